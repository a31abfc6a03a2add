// What an action changed: the fields whose values differ, before and after.

import { h } from "/assets/dom.js";
import { table } from "/assets/table.js";

const PARAMETERS = [{ name: "Parameter", head: true }, { name: "Value" }];
const COLUMNS = [{ name: "Field", head: true }, { name: "Before" }, { name: "After" }];

/** The table. `before` and `after` are documents; null if there was none. */
export function changes(before, after) {
  const [old, fresh] = [flat(before), flat(after)];
  const names = [...new Set([...old.keys(), ...fresh.keys()])].filter((name) => old.get(name) !== fresh.get(name));
  if (before && !after) return h("div", {}, h("p", { class: "soft" }, "As it was before:"), table("Before", COLUMNS.slice(0, 2), [...old].map(([name, text]) => [named(name), value(text)])));
  if (names.length === 0) return h("p", { class: "soft" }, "No field changed.");
  return table("What changed", COLUMNS, names.map((name) => [named(name), value(old.get(name)), value(fresh.get(name))]));
}

/** The action's parameters as a table; null if it had none. */
export function asked(request, entry) {
  const fields = [...flat(request)];
  if (fields.length === 0) return null;
  return h("div", { class: "log-request" }, table(`Parameters of entry ${entry}`, PARAMETERS, fields.map(([name, text]) => [named(name), value(text)])));
}

/** A document's fields by their path, such as `rate_limits.requests_per_day`. */
function flat(document, path = "", fields = new Map()) {
  if (document !== null && typeof document === "object") {
    for (const [name, content] of Object.entries(document)) flat(content, path ? `${path}.${name}` : name, fields);
  } else if (document !== null && document !== undefined) {
    fields.set(path, String(document));
  }
  return fields;
}

const named = (name) => h("code", { class: "break" }, name || "value");
const value = (text) => (text === undefined ? h("span", { class: "soft" }, "–") : h("span", { class: "break" }, text === "" ? "(empty)" : text));
