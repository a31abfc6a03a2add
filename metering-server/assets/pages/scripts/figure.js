// Rounded amounts that keep their exact value: it is shown on hover and focus, read by screen readers, and copied.

import { PLACES, fromUnits, group, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";

/** A number rounded to four decimal places, or two from a hundred on. A smaller one keeps its first digit. */
export function rounded(text) {
  const units = toUnits(text);
  const size = units < 0n ? -units : units;
  const scale = (places) => 10n ** BigInt(PLACES - places);
  let places = size >= 100n * scale(0) ? 2 : 4;
  while (size > 0n && (size + scale(places) / 2n) / scale(places) === 0n) places += 1;
  const round = ((size + scale(places) / 2n) / scale(places)) * scale(places);
  return fromUnits(units < 0n ? -round : round);
}

/** An amount in a text or a table. `sign` puts a plus in front of a positive one. */
export function figure(text, { sign = false } = {}) {
  const plus = sign && !text.startsWith("-") && text !== "0" ? "+" : "";
  const shown = rounded(text);
  if (shown === text) return h("span", { class: "amount" }, plus + group(text));
  return h(
    "span",
    { class: "amount", tabindex: "0", "data-exact": plus + text },
    h("span", { "aria-hidden": "true" }, plus + group(shown)),
    h("span", { class: "quietly-there" }, plus + text),
  );
}

/** Shows and copies exact values on this page, wherever an element has the attribute `data-exact`. */
export function startFigures() {
  const tip = h("div", { class: "exact-tip", "aria-hidden": "true", hidden: true });
  document.body.append(tip);
  const show = (target) => {
    const owner = target?.closest?.("[data-exact]");
    tip.hidden = !owner;
    if (!owner) return;
    tip.textContent = group(owner.dataset.exact);
    const [place, size] = [owner.getBoundingClientRect(), tip.getBoundingClientRect()];
    const left = Math.min(Math.max(place.left + place.width / 2 - size.width / 2, 8), innerWidth - size.width - 8);
    // Without a gap, so that the pointer can move onto it.
    const above = place.top - size.height;
    tip.style.setProperty("left", `${left + scrollX}px`);
    tip.style.setProperty("top", `${(above >= 0 ? above : place.bottom) + scrollY}px`);
  };
  document.addEventListener("pointerover", ({ target }) => target !== tip && show(target));
  document.addEventListener("focusin", ({ target }) => show(target));
  document.addEventListener("focusout", () => show(null));
  document.addEventListener("keydown", ({ key }) => key === "Escape" && show(null));
  document.addEventListener("copy", copyExact);
}

/** Puts exact values into the clipboard instead of the selected rounded ones. */
function copyExact(event) {
  const selection = getSelection();
  if (selection.rangeCount === 0 || selection.isCollapsed) return;
  const range = selection.getRangeAt(0).cloneRange();
  const owner = (node) => (node.nodeType === Node.TEXT_NODE ? node.parentElement : node).closest("[data-exact]");
  const [first, last] = [owner(range.startContainer), owner(range.endContainer)];
  if (first) range.setStartBefore(first);
  if (last) range.setEndAfter(last);
  const copy = h("div", { class: "quietly-there" }, range.cloneContents());
  const figures = copy.querySelectorAll("[data-exact]");
  if (figures.length === 0) return;
  for (const figure of figures) figure.textContent = figure.dataset.exact;
  // In the page, so that rows and cells are separated as in any other copy.
  document.body.append(copy);
  event.clipboardData.setData("text/plain", copy.innerText);
  copy.remove();
  event.preventDefault();
}
