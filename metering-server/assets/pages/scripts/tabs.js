// Tabs as in the ARIA practices: arrow keys move between them, and the URL's fragment remembers the open one. A fragment may
// also name a part of a panel.

/** Adds the behaviour to a tab list. `inUrl` is whether the fragment names the open tab; `opened` is called with its id. */
export function startTabs(list, { inUrl = true, opened = () => {} } = {}) {
  const tabs = [...list.querySelectorAll('[role="tab"]')];
  const panelOf = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
  const open = (tab, { focus = false, remember = true } = {}) => {
    for (const other of tabs) {
      const selected = other === tab;
      other.setAttribute("aria-selected", String(selected));
      other.tabIndex = selected ? 0 : -1;
      panelOf(other).hidden = !selected;
    }
    // On a phone the tabs scroll: the open one and its neighbours stay in view.
    list.scrollLeft = tab.offsetLeft - (list.clientWidth - tab.offsetWidth) / 2;
    if (focus) tab.focus({ preventScroll: true });
    opened(tab.id);
    if (remember && inUrl) history.replaceState(null, "", `#${tab.id.replace("tab-", "")}`);
  };
  const openNamed = (otherwise) => {
    const named = inUrl && tabs.find((tab) => `#${tab.id.replace("tab-", "")}` === location.hash);
    const part = inUrl && !named && document.getElementById(location.hash.slice(1));
    const holder = part && tabs.find((tab) => panelOf(tab).contains(part));
    const tab = named || holder || otherwise;
    if (tab) open(tab, { remember: false });
    if (holder) part.scrollIntoView();
  };
  list.addEventListener("click", ({ target }) => {
    const tab = target.closest('[role="tab"]');
    if (tab) open(tab);
  });
  list.addEventListener("keydown", (event) => {
    const place = tabs.indexOf(document.activeElement);
    const moves = { ArrowRight: place + 1, ArrowLeft: place - 1 + tabs.length, Home: 0, End: tabs.length - 1 };
    if (place < 0 || !(event.key in moves)) return;
    event.preventDefault();
    open(tabs[moves[event.key] % tabs.length], { focus: true });
  });
  addEventListener("hashchange", () => openNamed());
  return {
    openNamed: () => openNamed(tabs[0]),
    open: (id) => open(tabs.find((tab) => tab.id === id)),
  };
}
