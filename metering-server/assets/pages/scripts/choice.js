import { h } from "/assets/dom.js";

/** Buttons of which one is pressed. `options` are values with their labels; `chosen` is called with the value. */
export function choice(name, options, current, chosen) {
  const group = h("div", { class: "segments", role: "group", "aria-label": name });
  for (const [value, label] of options) {
    const button = h("button", { type: "button", "data-choice": value, "aria-pressed": String(value === current) }, label);
    button.addEventListener("click", () => {
      press(group, value);
      chosen(value);
    });
    group.append(button);
  }
  return group;
}

/** Shows which of the buttons is pressed. */
export function press(group, value) {
  for (const button of group.children) button.setAttribute("aria-pressed", String(button.dataset.choice === value));
}
