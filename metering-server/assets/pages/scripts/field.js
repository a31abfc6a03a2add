// The fields of dialogs, with their labels, hints and errors.

import { complain, h, say } from "/assets/dom.js";

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
 * A field: `name`, `label`, `hint`, and `check`. It is a text input, or several `lines` of text, or a list of `options`
 * (values with labels), or a checkbox with `box`. `when` gets a function that returns another field's value, and
 * decides whether to show this one.
 */
export function field({ name, label, hint, check = () => "", value = "", options, box = false, lines, when, ...attributes }) {
  const id = `field-${name}`;
  const described = [hint && `${id}-hint`, `${id}-error`].filter(Boolean).join(" ");
  const input = control({ id, value, options, box, lines, described, attributes });
  const words = h("label", { for: id, class: box ? "check" : null }, box && input, label);
  const error = h("p", { class: "field-error", id: `${id}-error`, role: "alert", hidden: true });
  const element = h("div", { class: "field" }, words, !box && input, hint && h("p", { class: "hint", id: `${id}-hint` }, hint), error);
  const read = () => (box ? input.checked : input.value.trim());
  if (when) queueMicrotask(() => follow(element, when));
  return {
    name,
    label,
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

/**
 * A group of checkboxes, with a `hint` about all of them: `options` are values with their labels and hints, `value` lists those that are checked, and
 * `closed` those that cannot be.
 */
export function boxes({ name, label, hint, options, value = [], closed = [], check = () => "" }) {
  const id = `field-${name}`;
  const inputs = options.map(([option]) => {
    const [checked, disabled] = [value.includes(option), closed.includes(option) && !value.includes(option)];
    return h("input", { type: "checkbox", id: `${id}-${option}`, value: option, checked, disabled, "aria-describedby": `${id}-${option}-hint ${id}-error` });
  });
  const rows = options.map(([option, title, about], place) =>
    h("div", { class: "box" }, h("label", { class: "check" }, inputs[place], title), h("p", { class: "hint", id: `${id}-${option}-hint` }, about)),
  );
  const error = h("p", { class: "field-error", id: `${id}-error`, role: "alert", hidden: true });
  const read = () => inputs.filter((input) => input.checked).map((input) => input.value);
  return {
    name,
    label,
    element: h("fieldset", { class: "field", id, "aria-describedby": hint && `${id}-hint` }, h("legend", {}, label), hint && h("p", { class: "hint", id: `${id}-hint` }, hint), ...rows, error),
    input: inputs.find((input) => !input.disabled) ?? inputs[0],
    value: read,
    complain: (text) => say(error, text),
    isVisible: () => true,
    validate() {
      const problem = check(read());
      say(error, problem);
      return !problem;
    },
  };
}

function control({ id, value, options, box, lines, described, attributes }) {
  const common = { id, "aria-describedby": described, ...attributes };
  if (lines) return h("textarea", { rows: lines, spellcheck: "false", ...common }, value);
  if (box) return h("input", { type: "checkbox", ...common, checked: Boolean(value) });
  if (!options) return h("input", { type: "text", spellcheck: "false", ...common, value });
  return h("select", common, ...options.map(([option, text]) => h("option", { value: option, selected: option === value }, text)));
}

/** Hides a field that the values of the other fields make unnecessary. */
function follow(element, when) {
  const form = element.closest("form");
  const other = (name) => form.querySelector(`#field-${name}`).value;
  const update = () => {
    element.hidden = !when(other);
  };
  form.addEventListener("input", update);
  update();
}
