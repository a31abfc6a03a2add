// One operation of the reference: its row, and below it parameters, response, code and the panel to try it.

import { codeTabs } from "/assets/codetabs.js";
import { h } from "/assets/dom.js";
import { Parameters } from "/assets/parameters.js";
import { pretty } from "/assets/pretty.js";
import { priceInFull, priceTag } from "/assets/price.js";
import { prose } from "/assets/prose.js";
import { bodyOf } from "/assets/requestbody.js";
import { requestOf } from "/assets/samples.js";
import { schemaOf } from "/assets/schema.js";
import { isTriable, tryIt } from "/assets/tryit.js";

/** The row of an operation. Its body is built when it is first opened. */
export function showOperation(api, operation) {
  const path = operation.path.split(/(\{[^}]+\})/).map((part) => (part.startsWith("{") ? h("span", { class: "path-parameter" }, part) : part));
  const summary = h(
    "summary",
    {},
    h("span", { class: "method" }, operation.method.toUpperCase()),
    h("span", { class: "path" }, ...path),
    h("span", { class: "summary" }, operation.summary ?? ""),
    priceTag(operation),
  );
  const words = [operation.method, operation.path, operation.summary, ...Object.keys(operation.responses ?? {})];
  const element = h("details", { class: "operation", id: operation.operationId, "data-search": words.join(" ").toLowerCase() }, summary);
  element.addEventListener("toggle", () => {
    if (element.open && element.childElementCount === 1) element.append(body(api, operation));
  });
  // Except those that the URL opens, or the search hides.
  summary.addEventListener("click", () => {
    if (!element.open) history.replaceState(null, "", `#${element.id}`);
  });
  return element;
}

function body(api, operation) {
  const { facts, parameters, update } = request(api, operation);
  const sent = bodyOf(api, operation, update);
  const current = () => requestOf(operation, parameters.values(), sent?.text() ?? "");
  const code = codeTabs(`${operation.operationId}-sample`, current());
  const panel = isTriable(operation) ? tryIt(operation, parameters, sent) : null;
  update.run = () => {
    code.update(current());
    panel?.update();
  };
  const example = exampleResponse(operation);
  const side = h("div", { class: "operation-side" }, code.element, panel && sent?.element, panel?.element, example);
  const response = h("div", { class: "operation-response" }, part("Response", ...success(api, operation)));
  return h("div", { class: "operation-body" }, facts, side, response, refusals(operation));
}

const part = (title, ...content) => h("div", { class: "part" }, h("h3", {}, title), ...content);

/** The request: price, parameters, headers, body. */
function request(api, operation) {
  const update = () => update.run?.();
  const parameters = new Parameters(api, operation, update);
  const priced = priceInFull(operation);
  const parts = [];
  if (priced) parts.push(part("Price", priced, free(operation)));
  else if (operation.description) parts.push(h("div", { class: "stack-gap" }, ...prose(operation.description)));
  if (parameters.elements.length > 0) parts.push(part("Parameters", ...parameters.elements));
  const headers = [...authorization(api, operation), ...parameters.headers];
  if (headers.length > 0) parts.push(part("Headers", ...headers));
  const content = operation.requestBody?.content;
  if (content) parts.push(part("Body", ...Object.entries(content).map(([type, { schema }]) => h("div", {}, h("p", { class: "soft" }, h("code", {}, type)), schemaOf(api, schema)))));
  return { facts: h("div", { class: "operation-facts" }, ...parts), parameters, update };
}

/** Texts as in "404, 429 or 5xx". */
const either = new Intl.ListFormat("en-GB", { type: "disjunction" });

/** The upstream's responses that cost nothing. */
function free(operation) {
  const statuses = operation["x-free-statuses"] ?? [];
  return statuses.length > 0 && h("p", { class: "soft" }, `Responses with status ${either.format(statuses.map(String))} cost nothing.`);
}

function authorization(api, operation) {
  const names = [...new Set((operation.security ?? api.security ?? []).flatMap((need) => Object.keys(need)))];
  if (names.length === 0) return [];
  const shown = names.map((name) => {
    const scheme = api.components?.securitySchemes?.[name];
    return scheme?.scheme === "bearer" ? "Authorization: Bearer sk_live_…" : `${scheme?.name ?? name}: sk_live_…`;
  });
  return shown.map((text, place) => h("p", { class: "header" }, place > 0 && "or ", h("code", {}, text)));
}

/** The body of a successful response. Responses of the service itself have a schema; for metered routes the catalogue may. */
function success(api, operation) {
  return Object.entries(operation.responses ?? {})
    .filter(([code]) => code < "400")
    .flatMap(([code, response]) => {
      const shapes = Object.entries(response.content ?? {}).map(([type, content]) => {
        const schema = content.schema ?? content["x-event-schema"];
        const what = content["x-event-schema"] ? "the data of each event:" : "";
        return h("div", {}, h("p", { class: "soft" }, h("code", {}, type), what && ` ${what}`), schema && schemaOf(api, schema));
      });
      return [h("p", {}, h("span", { class: "code good" }, code), " ", ...prose(response.description ?? "", { inline: true })), ...shapes];
    });
}

function exampleResponse(operation) {
  const [type, { example } = {}] = Object.entries(operation.responses?.["200"]?.content ?? {})[0] ?? [];
  if (example === undefined) return null;
  const title = type === "text/event-stream" ? "Example of an event's data" : "Example response";
  const text = h("pre", { tabindex: "0", role: "group", "aria-label": title }, ...pretty(JSON.stringify(example)));
  return h("div", { class: "snippet example" }, h("div", { class: "snippet-head" }, title), text);
}

/** All other responses, behind a summary. */
function refusals(operation) {
  const others = Object.entries(operation.responses ?? {}).filter(([code]) => code >= "400");
  if (others.length === 0) return null;
  const rows = others.map(([code, response]) => h("div", { class: "response" }, h("span", { class: "code" }, code), h("span", {}, ...prose(response.description ?? "", { inline: true }))));
  return h("details", { class: "table-details refusals" }, h("summary", {}, "Errors"), h("div", { class: "responses" }, ...rows));
}
