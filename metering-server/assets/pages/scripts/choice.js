import { h } from "/assets/dom.js";

/** Buttons of which one is pressed. `options` are values with their labels; `chosen` is called with the value. */
export function choice(name, options, current, chosen) {
  const group = h("div", { class: "segments", role: "group", "aria-label": name });
  for (const [value, label] of options) {
    const button = h("button", { type: "button", "data-choice": value, "aria-pressed": String(value === current) }, label);
    button.addEventListener("click", () => {
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
      chosen(value);
    });
    group.append(button);
  }
  return group;
}
