// The steps of a payment, listed before they happen and ticked as they do.

import { h } from "/assets/dom.js";

/**
 * The list. `planned` has the words of each step by name, and `finished` those that say what happened once it is done.
 * Returns the element, the function that updates a step: `say(step, state, detail, happened)`, where `state` is empty,
 * `now`, `done` or `failed`, and `happened` replaces the finished words; and `word(step, words)`, which replaces the
 * planned ones.
 */
export function stepList(planned, finished = {}) {
  const [ahead, past] = [{ ...planned }, { ...finished }];
  const details = new Map();
  const texts = new Map();
  const items = new Map();
  const shown = new Map(Object.entries(planned));
  for (const [name, words] of shown) {
    details.set(name, h("span", { class: "under" }));
    texts.set(name, h("span", {}, words));
    items.set(name, h("li", { "data-step": name }, h("span", {}, texts.get(name), details.get(name))));
  }
  const said = h("p", { class: "quietly-there", role: "status" });
  const list = h("ol", { class: "progress" }, ...items.values());
  const show = (name) => {
    const words = (items.get(name).dataset.state === "done" && past[name]) || ahead[name];
    if (shown.get(name) === words) return;
    shown.set(name, words);
    texts.get(name).replaceChildren(...[words].flat());
  };
  const say = (name, state, detail, happened) => {
    const item = items.get(name);
    if (!item) return;
    if (happened !== undefined) past[name] = happened;
    item.dataset.state = state;
    show(name);
    if (state === "now") item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
    if (detail === undefined) return;
    const parts = [detail].flat();
    const text = parts.map((part) => part.textContent ?? part).join("");
    if (details.get(name).textContent === text) return;
    details.get(name).replaceChildren(...parts);
    said.textContent = text || (state === "done" ? texts.get(name).textContent : "");
  };
  const word = (name, words) => {
    if (!items.has(name)) return;
    ahead[name] = words;
    show(name);
  };
  return { element: h("div", {}, list, said), say, word };
}

/** What happened when a wallet shared its address. */
export const connected = (address) => ["Wallet ", h("span", { class: "mono", title: address }, `${address.slice(0, 6)}…${address.slice(-4)}`), " connected."];

/** The hash of a transaction, with a link to it where the chain has an explorer. */
export function transaction(hash, url) {
  const short = `${hash.slice(0, 10)}…${hash.slice(-8)}`;
  return url ? h("a", { class: "mono", href: url, rel: "noopener noreferrer", target: "_blank", title: hash }, short) : h("span", { class: "mono", title: hash }, short);
}
