// Lists with filters, which are in the fragment, so that a filtered list can be reloaded and shared.

import { sentence } from "/assets/api.js";
import { query } from "/assets/console-api.js";
import { busy, h } from "/assets/dom.js";

/** The days of a filter: from one to another, both included. */
export const DAYS = [
  { name: "from", label: "From (UTC)", type: "date" },
  { name: "to", label: "To (UTC)", type: "date" },
];

/** Whether a time is in the days of a filter. */
export const isInDays = (time, { from, to }) => (!from || time.slice(0, 10) >= from) && (!to || time.slice(0, 10) <= to);

/** The parameters in the fragment: what follows its question mark. */
export const fragmentQuery = () => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1] ?? ""));

/**
 * A form with filters over a list: the nodes of both. `fields` have a `name`, a `label`, and may have a `type`, `options`
 * (values with labels), an `id`, and more attributes of the input. `list(values, found)` loads the list; it may call
 * `found` with what to say about it. `path` is the fragment without parameters; without it the filters are not in there.
 * `submit` is the button's text, and `hint` is shown under the form. Forms on the same page need different `prefix`es.
 */
export async function filtered({ label, fields, list, path, submit = "Filter", hint, statusId, prefix = "filter" }) {
  const given = path ? fragmentQuery() : {};
  const inputs = fields.map((one) => filterInput({ id: `${prefix}-${one.name}`, ...one }, given[one.name]));
  const button = h("button", { class: "button", type: "submit" }, submit);
  const said = h("p", { class: "status", id: statusId, role: "status" });
  const values = () => Object.fromEntries(inputs.map(({ name, control }) => [name, control.value.trim()]));
  const place = h("div", {}, await list(values(), () => {}));
  const form = h("form", { role: "search", "aria-label": label, class: "search-form filter-form" }, ...inputs.map(({ element }) => element), button);
  const show = () =>
    busy(button, async () => {
      const wanted = values();
      said.textContent = "";
      try {
        place.replaceChildren(await list(wanted, (words) => (said.textContent = words)));
        // Not as a separate history entry. Parameters of other forms stay.
        if (path) history.replaceState(null, "", `#${path}${query({ ...fragmentQuery(), ...wanted })}`);
      } catch (error) {
        said.textContent = sentence(error);
      }
    });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  // A choice needs no button; a text is complete with Enter.
  for (const { control, type } of inputs) {
    if (type !== "search") control.addEventListener("change", show);
  }
  return [form, hint, said, place].filter(Boolean);
}

/** One of the fields, described as for `filtered`, and its element in the form. */
export function filterInput({ name, label, type = "search", options, id, ...attributes }, value = "") {
  const control = options
    ? h("select", { id, ...attributes }, ...options.map(([option, words]) => h("option", { value: option, selected: option === value }, words)))
    : h("input", { id, type, value, autocomplete: "off", spellcheck: "false", ...attributes });
  const element = h("div", { class: type === "search" && !options ? "field" : "field field-short" }, h("label", { for: id }, label), control);
  return { name, control, type: options ? "options" : type, element };
}
