// The steps of a payment, listed before they happen and ticked as they do.

import { h } from "/assets/dom.js";

/**
 * The list. `steps` has the words of each step by name. Returns the element, the function that updates a step:
 * `say(step, state, detail)`, where `state` is empty, `now`, `done` or `failed`; and `word(step, words)`, which words it anew.
 */
export function stepList(steps) {
  const details = new Map();
  const texts = new Map();
  const items = new Map();
  for (const [name, words] of Object.entries(steps)) {
    details.set(name, h("span", { class: "under" }));
    texts.set(name, h("span", {}, words));
    items.set(name, h("li", { "data-step": name }, h("span", {}, texts.get(name), details.get(name))));
  }
  const said = h("p", { class: "quietly-there", role: "status" });
  const list = h("ol", { class: "progress" }, ...items.values());
  const say = (name, state, detail) => {
    const item = items.get(name);
    if (!item) return;
    item.dataset.state = state;
    if (state === "now") item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
    if (detail === undefined) return;
    const parts = [detail].flat();
    const text = parts.map((part) => part.textContent ?? part).join("");
    if (details.get(name).textContent === text) return;
    details.get(name).replaceChildren(...parts);
    said.textContent = text;
  };
  const word = (name, words) => texts.get(name)?.replaceChildren(...[words].flat());
  return { element: h("div", {}, list, said), say, word };
}

/** The hash of a transaction, with a link to it where the chain has an explorer. */
export function transaction(hash, url) {
  const short = `${hash.slice(0, 10)}…${hash.slice(-8)}`;
  return url ? h("a", { class: "mono", href: url, rel: "noopener noreferrer", target: "_blank", title: hash }, short) : h("span", { class: "mono", title: hash }, short);
}
