// The fields of dialogs, with their labels, hints and errors.

import { complain, h } from "/assets/dom.js";

/** Checks of what was entered: each returns the problem, or an empty text. */
export const checks = {
  credits: (text) => (/^\d+(\.\d{1,8})?$/.test(text) && /[1-9]/.test(text) ? "" : "Enter a number above zero, with up to eight decimals."),
  change: (text) => (/^-?\d+(\.\d{1,8})?$/.test(text) && /[1-9]/.test(text) ? "" : "Enter a number other than zero, with up to eight decimals."),
  credit: (text) => (/^\d+(\.\d{1,8})?$/.test(text) ? "" : "Enter a number, with up to eight decimals."),
  whole: (text) => (/^\d{1,10}$/.test(text) ? "" : "Enter a whole number."),
  given: (text) => (text ? "" : "Fill in this field."),
};

/** `check`, for a field that may be empty. */
export const optional = (check) => (text) => (text === "" ? "" : check(text));

/**
 * A field: `name`, `label`, `hint`, and `check`. It is a text input, or a list of `options` (values with labels), or a
 * checkbox with `box`. `when` says, given a function that returns another field's value, whether it is asked for.
 */
export function field({ name, label, hint, check = () => "", value = "", options, box = false, when, ...attributes }) {
  const id = `field-${name}`;
  const described = [hint && `${id}-hint`, `${id}-error`].filter(Boolean).join(" ");
  const input = control({ id, value, options, box, described, attributes });
  const words = h("label", { for: id, class: box ? "check" : null }, box && input, label);
  const error = h("p", { class: "field-error", id: `${id}-error`, role: "alert", hidden: true });
  const element = h("div", { class: "field" }, words, !box && input, hint && h("p", { class: "hint", id: `${id}-hint` }, hint), error);
  const read = () => (box ? input.checked : input.value.trim());
  if (when) queueMicrotask(() => follow(element, when));
  return {
    name,
    element,
    input,
    value: read,
    complain: (text) => complain(input, text),
    isVisible: () => !element.hidden,
    validate() {
      const problem = box ? "" : check(read());
      complain(input, problem);
      return !problem;
    },
  };
}

function control({ id, value, options, box, described, attributes }) {
  const common = { id, "aria-describedby": described, ...attributes };
  if (box) return h("input", { type: "checkbox", ...common, checked: Boolean(value) });
  if (!options) return h("input", { type: "text", spellcheck: "false", ...common, value });
  return h("select", common, ...options.map(([option, text]) => h("option", { value: option, selected: option === value }, text)));
}

/** Hides a field while the others of its form do not ask for it. */
function follow(element, when) {
  const form = element.closest("form");
  const other = (name) => form.querySelector(`#field-${name}`).value;
  const update = () => {
    element.hidden = !when(other);
  };
  form.addEventListener("input", update);
  update();
}
