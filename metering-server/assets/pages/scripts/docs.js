// The API page: the service's OpenAPI document, grouped by tag, with the parameters and responses of each endpoint.

import { byId, h } from "/assets/dom.js";
import { prose } from "/assets/prose.js";
import { schemaOf, typeOf } from "/assets/schema.js";

const METHODS = ["get", "post", "put", "patch", "delete", "head", "options", "trace"];

async function start() {
  let document_;
  try {
    const response = await fetch("/openapi.json", { credentials: "omit" });
    if (!response.ok) throw new Error(String(response.status));
    document_ = await response.json();
  } catch {
    const again = h("button", { class: "button button-quiet button-small", type: "button", on: { click: start } }, "Try again");
    byId("docs").replaceChildren(h("div", { class: "notice notice-bad", role: "alert" }, h("p", {}, "Could not load the OpenAPI document."), h("div", { class: "actions" }, again)));
    return;
  }
  show(document_);
}

function show(api) {
  const [about, ...rest] = (api.info.description ?? "").split("\n\n");
  const codes = rest.length > 0 && h("details", { class: "table-details" }, h("summary", {}, rest[0].replace(/:$/, "")), ...prose(rest.slice(1).join("\n\n")));
  const intro = h("div", { class: "docs-intro" }, h("p", {}, about), codes);
  const groups = groupsOf(api).map(({ tag, operations }) => {
    const list = h("div", { class: "operations" }, ...operations.map((operation) => shown(api, operation)));
    return h("section", { class: "group", id: `tag-${tag.name}`, "aria-label": tag.name }, h("h2", {}, tag.name[0].toUpperCase() + tag.name.slice(1)), h("p", { class: "soft" }, tag.description ?? ""), list);
  });
  byId("docs").replaceChildren(intro, ...groups);
  byId("filter").addEventListener("input", filter);
  openNamed();
  addEventListener("hashchange", openNamed);
}

function groupsOf(api) {
  const tags = new Map((api.tags ?? []).map((tag) => [tag.name, { tag, operations: [] }]));
  for (const [path, item] of Object.entries(api.paths)) {
    // HEAD is the same as GET without a body, so it is listed only where there is no GET.
    for (const method of METHODS.filter((method) => item[method] && !(method === "head" && item.get))) {
      const name = item[method].tags?.[0] ?? "other";
      if (!tags.has(name)) tags.set(name, { tag: { name }, operations: [] });
      tags.get(name).operations.push({ path, method, ...item[method] });
    }
  }
  return [...tags.values()].filter(({ operations }) => operations.length > 0);
}

/** One endpoint. Its body is built when it is first opened. */
function shown(api, operation) {
  const summary = h(
    "summary",
    {},
    h("span", { class: "method" }, operation.method.toUpperCase()),
    h("span", { class: "path" }, operation.path),
    h("span", { class: "summary" }, operation.summary ?? ""),
  );
  const id = `${operation.method}-${operation.path}`;
  const element = h("details", { class: "operation", id, "data-search": `${operation.method} ${operation.path} ${operation.summary ?? ""} ${Object.keys(operation.responses ?? {}).join(" ")}`.toLowerCase() }, summary);
  element.addEventListener("toggle", () => {
    if (element.open && element.childElementCount === 1) element.append(body(api, operation));
  });
  return element;
}

function body(api, operation) {
  const parts = [];
  if (operation.description) parts.push(h("div", { class: "stack-gap" }, ...prose(operation.description)));
  const keys = (operation.security ?? api.security ?? []).flatMap((need) => Object.keys(need));
  if (keys.length > 0) parts.push(part("Authorization", h("p", {}, [...new Set(keys)].map((name) => schemeName(api, name)).join(", or "))));
  if (operation.parameters?.length) parts.push(part("Parameters", h("ul", { class: "schema" }, ...operation.parameters.map((parameter) => parameterItem(api, parameter)))));
  const content = operation.requestBody?.content;
  if (content) parts.push(part("Body", ...Object.entries(content).map(([type, { schema }]) => h("div", {}, h("p", { class: "soft" }, h("code", {}, type)), schemaOf(api, schema)))));
  parts.push(part("Responses", h("div", { class: "responses" }, ...Object.entries(operation.responses ?? {}).map(([code, response]) => responseItem(api, code, response)))));
  return h("div", { class: "operation-body" }, ...parts);
}

const part = (title, ...content) => h("div", {}, h("h3", {}, title), ...content);

function schemeName(api, name) {
  const scheme = api.components?.securitySchemes?.[name];
  if (scheme?.type === "apiKey") return `header ${scheme.name}`;
  return scheme?.scheme === "bearer" ? "Authorization: Bearer sk_live_…" : name;
}

function parameterItem(api, parameter) {
  const about = parameter.description && h("span", { class: "about" }, ...prose(parameter.description, { inline: true }));
  const type = `${typeOf(api, parameter.schema)}, in ${parameter.in}${parameter.required ? ", required" : ""}`;
  return h("li", {}, h("code", {}, parameter.name), h("span", { class: "type" }, type), about);
}

function responseItem(api, code, response) {
  const schemas = Object.values(response.content ?? {}).map(({ schema }) => schema).filter(Boolean);
  const shape = schemas.length > 0 && h("details", { class: "table-details" }, h("summary", {}, "Body"), ...schemas.map((schema) => schemaOf(api, schema)));
  return h("div", { class: "response" }, h("span", { class: `code ${code < "400" ? "good" : ""}` }, code), h("span", {}, ...prose(response.description ?? "", { inline: true })), shape);
}

function filter() {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const group of document.querySelectorAll(".group")) {
    let any = false;
    for (const operation of group.querySelectorAll(".operation")) {
      operation.hidden = !words.every((word) => operation.dataset.search.includes(word));
      any ||= !operation.hidden;
      count += operation.hidden ? 0 : 1;
    }
    group.hidden = !any;
  }
  byId("docs-status").textContent = words.length > 0 ? `${count} endpoint${count === 1 ? "" : "s"}` : "";
}

function openNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named instanceof HTMLDetailsElement) named.open = true;
  named?.scrollIntoView();
}

start();
