// The body of an operation's request: a field with JSON, prefilled with its example, or from its schema.

import { complain, h } from "/assets/dom.js";
import { exampleOf } from "/assets/example.js";

const TYPE = "application/json";
/** The minimum and maximum lines that the field shows; longer texts scroll. */
const [LINES_LEAST, LINES_MOST] = [4, 18];

/**
 * A JSON body to begin with: the document's own example, or one made from the schema, if the schema is detailed enough.
 */
function prefilled(api, { example, schema = {} }) {
  if (example !== undefined) return JSON.stringify(example, null, 2);
  return Object.keys(schema).length > 0 ? JSON.stringify(exampleOf(api, schema), null, 2) : "";
}

/** The body of an operation's requests, or null if they have none. `changed` is called when it changes. */
export function bodyOf(api, operation, changed) {
  const content = operation.requestBody?.content?.[TYPE];
  return content ? new RequestBody(operation, prefilled(api, content), changed) : null;
}

class RequestBody {
  constructor(operation, text, changed) {
    const id = `${operation.operationId}-body`;
    const rows = Math.min(Math.max(text.split("\n").length + 1, LINES_LEAST), LINES_MOST);
    this.required = operation.requestBody.required === true;
    this.field = h("textarea", { id, class: "mono", rows, spellcheck: "false", autocomplete: "off", autocapitalize: "none", "aria-describedby": `${id}-error`, placeholder: this.required ? "" : "not sent" });
    this.field.value = text;
    this.field.addEventListener("input", () => {
      complain(this.field, "");
      changed();
    });
    const error = h("p", { class: "field-error", id: `${id}-error`, role: "alert", hidden: true });
    this.element = h("div", { class: "field body-field" }, h("label", { for: id }, this.required ? "Body (JSON)" : "Body (JSON, optional)"), this.field, error);
  }

  /** The body to send; empty for none. */
  text() {
    return this.field.value.trim();
  }

  /** Whether it can be sent. If not, says why. */
  check() {
    const problem = this.problem();
    complain(this.field, problem);
    if (problem) this.field.focus();
    return !problem;
  }

  problem() {
    const text = this.text();
    if (text === "") return this.required ? "Enter the body." : "";
    try {
      JSON.parse(text);
      return "";
    } catch (error) {
      return `This is not JSON: ${error.message}`;
    }
  }
}
