// Code in several languages, as tabs (ARIA practices) with a copy button. All of a page's tabs show the same language.

import { h } from "/assets/dom.js";
import { LANGUAGES } from "/assets/samples.js";
import { copyButton } from "/assets/secret.js";

let chosen = LANGUAGES[0].id;
const all = new Set();

/** The tabs of one request. `update` shows another request. */
export function codeTabs(id, request) {
  const tabs = LANGUAGES.map((language) =>
    h("button", { type: "button", role: "tab", id: `${id}-${language.id}`, "aria-controls": `${id}-code`, "data-language": language.id }, language.title),
  );
  const code = h("code");
  const panel = h("pre", { id: `${id}-code`, role: "tabpanel", tabindex: "0" }, code);
  const copy = copyButton(() => code.textContent, "Copy", "button button-quiet button-small");
  const list = h("div", { class: "code-languages", role: "tablist", "aria-label": "Language" }, ...tabs);
  const element = h("div", { class: "snippet code-tabs" }, h("div", { class: "snippet-head" }, list, copy), panel);
  let shown = request;
  const draw = () => {
    for (const tab of tabs) {
      const selected = tab.dataset.language === chosen;
      tab.setAttribute("aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `${id}-${chosen}`);
    code.textContent = LANGUAGES.find((language) => language.id === chosen).code(shown);
  };
  list.addEventListener("click", ({ target }) => choose(target.closest("[data-language]")));
  list.addEventListener("keydown", (event) => {
    const place = tabs.indexOf(document.activeElement);
    const moves = { ArrowRight: place + 1, ArrowLeft: place - 1 + tabs.length, Home: 0, End: tabs.length - 1 };
    if (place < 0 || !(event.key in moves)) return;
    event.preventDefault();
    const tab = tabs[moves[event.key] % tabs.length];
    choose(tab);
    tab.focus();
  });
  all.add(draw);
  draw();
  return {
    element,
    update: (other) => {
      shown = other;
      draw();
    },
  };
}

function choose(tab) {
  if (!tab) return;
  chosen = tab.dataset.language;
  for (const draw of all) draw();
}
