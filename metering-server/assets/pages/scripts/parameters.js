// An operation's parameters: their description, and a field for each, prefilled with its example.

import { complain, h } from "/assets/dom.js";
import { guideLink } from "/assets/guidelink.js";
import { prose } from "/assets/prose.js";
import { typeOf } from "/assets/schema.js";

/** The guides about headers. */
const GUIDES = { "Idempotency-Key": ["idempotency", "How retries are charged once"] };

/** The fields of an operation. `changed` is called when a value changes. Headers are described apart, without a field. */
export class Parameters {
  constructor(api, operation, changed) {
    this.fields = (operation.parameters ?? []).map((parameter) => ({ parameter, input: parameter.in === "header" ? null : inputOf(operation, parameter, changed) }));
    const shown = (inHeader) => this.fields.filter(({ parameter }) => (parameter.in === "header") === inHeader).map(({ parameter, input }) => item(api, parameter, input));
    this.elements = shown(false);
    this.headers = shown(true);
  }

  /** The values by name. */
  values() {
    return new Map(this.fields.filter(({ input }) => input).map(({ parameter, input }) => [parameter.name, input.value.trim()]));
  }

  /** Whether every required value is present. If not, marks the first missing one. */
  check() {
    const missing = this.fields.filter(({ parameter, input }) => {
      if (!input) return false;
      const lacks = parameter.required && input.value.trim() === "";
      complain(input, lacks ? "Enter a value." : "");
      return lacks;
    });
    missing[0]?.input.focus();
    return missing.length === 0;
  }
}

function inputOf(operation, parameter, changed) {
  const id = `${operation.operationId}-${parameter.name}`;
  const example = parameter.example === undefined ? "" : String(parameter.example);
  const about = { id, "aria-describedby": `${id}-about ${id}-error`, on: { input: changed } };
  if (parameter.schema?.type === "boolean") {
    const option = (value, text) => h("option", { value, selected: value === example }, text);
    return h("select", about, parameter.required ? null : option("", "not sent"), option("true", "true"), option("false", "false"));
  }
  const numeric = ["integer", "number"].includes(parameter.schema?.type);
  return h("input", { ...about, value: example, class: "mono", autocomplete: "off", autocapitalize: "none", spellcheck: "false", inputmode: numeric ? "decimal" : null, placeholder: parameter.required ? "" : "not sent" });
}

function item(api, parameter, input) {
  const type = [typeOf(api, parameter.schema), parameter.in, parameter.required && "required"].filter(Boolean).join(" · ");
  const name = h("code", {}, parameter.name);
  const guide = GUIDES[parameter.name];
  const about = parameter.description && h("span", { class: "about" }, ...prose(parameter.description, { inline: true }), guide && ". ", guide && guideLink(...guide));
  const head = input ? h("label", { for: input.id }, name) : name;
  const rest = input ? [input, h("p", { class: "field-error", id: `${input.id}-error`, role: "alert", hidden: true })] : [];
  return h("div", { class: "parameter" }, h("div", { class: "parameter-head" }, head, h("span", { class: "type" }, type)), h("div", { id: input ? `${input.id}-about` : null }, about), ...rest);
}
