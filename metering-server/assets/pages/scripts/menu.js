// A button that opens a menu, as in the ARIA practices. It is above everything else, so that a table cannot cut it off.

import { h } from "/assets/dom.js";

/**
 * A button with a menu. `subject` is announced by screen readers; `items` have an `action`, a `label`, `work`, and may
 * be a `danger`.
 */
export function menuButton(subject, items) {
  const entries = items.map(({ action, label, danger, work }) =>
    h("button", { class: danger ? "danger" : null, type: "button", role: "menuitem", tabindex: "-1", "data-action": action, on: { click: () => {
      close();
      work();
    } } }, label),
  );
  const menu = h("div", { class: "menu", role: "menu", popover: "auto", "aria-label": `Actions for ${subject}` }, ...entries);
  const button = h("button", { class: "menu-button", type: "button", "aria-haspopup": "menu", "aria-expanded": "false", "aria-label": `Actions for ${subject}` }, h("span", { "aria-hidden": "true" }, "⋯"));
  const isOpen = () => button.getAttribute("aria-expanded") === "true";
  const open = (entry) => {
    menu.showPopover();
    place(menu, button);
    entry.focus();
  };
  const close = () => {
    menu.hidePopover();
    button.focus({ preventScroll: true });
  };
  // A press on the button closes the menu before its click arrives, which would open it again.
  let wasOpen = false;
  button.addEventListener("pointerdown", () => {
    wasOpen = isOpen();
  });
  button.addEventListener("click", () => {
    if (!wasOpen && !isOpen()) open(entries[0]);
    wasOpen = false;
  });
  button.addEventListener("keydown", (event) => {
    const first = { ArrowDown: 0, ArrowUp: entries.length - 1 }[event.key];
    if (first === undefined) return;
    event.preventDefault();
    open(entries[first]);
  });
  // Scroll events may be from before the menu opened: only one that moved the button closes the menu.
  let opened = null;
  const scrolled = () => {
    const { top, left } = button.getBoundingClientRect();
    if (top !== opened.top || left !== opened.left) away();
  };
  menu.addEventListener("beforetoggle", ({ newState }) => {
    button.setAttribute("aria-expanded", String(newState === "open"));
    opened = button.getBoundingClientRect();
    if (newState === "open") addEventListener("scroll", scrolled, { capture: true, passive: true });
    else removeEventListener("scroll", scrolled, { capture: true });
  });
  const away = () => menu.hidePopover();
  menu.addEventListener("keydown", (event) => move(event, entries, { close, away }));
  return h("span", { class: "menu-place" }, button, menu);
}

/** The menu that is open in a panel: a function that opens it again after the panel was drawn anew. */
export function openMenu(panel) {
  const opened = panel.querySelector("[data-actions]:has(:popover-open)")?.dataset.actions;
  return () => opened && panel.querySelector(`[data-actions="${opened}"] .menu-button`)?.click();
}

function move(event, entries, { close, away }) {
  const here = entries.indexOf(document.activeElement);
  const moves = { ArrowDown: here + 1, ArrowUp: here - 1 + entries.length, Home: 0, End: entries.length - 1 };
  if (event.key === "Tab") {
    away();
    return;
  }
  if (event.key === "Escape") {
    close();
  } else if (event.key in moves) {
    entries[moves[event.key] % entries.length].focus();
  } else {
    const letter = event.key.toLowerCase();
    const named = [...entries.slice(here + 1), ...entries].find((entry) => entry.textContent.toLowerCase().startsWith(letter));
    if (event.key.length !== 1 || event.key === " " || !named) return;
    named.focus();
  }
  event.preventDefault();
}

/** Puts the menu below its button, or above it if there is no room below, aligned with the button's right edge. */
function place(menu, button) {
  const [at, size] = [button.getBoundingClientRect(), menu.getBoundingClientRect()];
  const below = at.bottom + 4;
  const top = below + size.height <= innerHeight ? below : Math.max(at.top - 4 - size.height, 8);
  menu.style.setProperty("top", `${top}px`);
  menu.style.setProperty("left", `${Math.max(at.right - size.width, 8)}px`);
}
