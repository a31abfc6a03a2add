// The API reference: the service's OpenAPI document, metered routes first, each with its price on its row.

import { byId, h } from "/assets/dom.js";
import { apiOrigin } from "/assets/samples.js";
import { groupsOf } from "/assets/groups.js";
import { searchGuides } from "/assets/guidesearch.js";
import { showOperation } from "/assets/operation.js";
import { prose } from "/assets/prose.js";
import { copyButton } from "/assets/secret.js";

async function start() {
  let api;
  try {
    const response = await fetch("/openapi.json", { credentials: "omit" });
    if (!response.ok) throw new Error(String(response.status));
    api = await response.json();
  } catch {
    const again = h("button", { class: "button button-quiet button-small", type: "button", on: { click: start } }, "Try again");
    byId("docs").replaceChildren(h("div", { class: "notice notice-bad", role: "alert" }, h("p", {}, "Could not load the OpenAPI document."), h("div", { class: "actions" }, again)));
    return;
  }
  show(api);
}

function show(api) {
  const groups = groupsOf(api);
  const errors = errorCodes(api);
  byId("base-url").replaceChildren(h("code", {}, apiOrigin()), copyButton(apiOrigin(), "Copy", "button button-quiet button-small"));
  byId("docs-start").hidden = false;
  byId("docs").replaceChildren(...groups.map((group) => section(api, group)), ...errors);
  showContents(groups, errors.length > 0);
  byId("filter").addEventListener("input", filter);
  document.addEventListener("keydown", searchByKey);
  openNamed();
  addEventListener("hashchange", openNamed);
}

function section(api, group) {
  const list = h("div", { class: "operations" }, ...group.operations.map((operation) => showOperation(api, operation)));
  const shown = group.priced ? list : h("details", { class: "endpoints-more" }, h("summary", {}, endpoints(group.operations.length), ", free"), list);
  return h("section", { class: "group", id: group.id, "aria-labelledby": `${group.id}-title` }, h("h2", { id: `${group.id}-title` }, group.title), group.about && h("p", { class: "soft" }, group.about), shown);
}

/** The table of error codes, which is in the document's description. */
function errorCodes(api) {
  const [, title, table] = (api.info.description ?? "").split("\n\n");
  if (!table?.startsWith("|")) return [];
  const about = h("p", { class: "soft" }, "Errors are JSON: ", h("code", {}, "error"), " is a stable code; ", h("code", {}, "message"), " says what to do.");
  const codes = h("details", { class: "table-details" }, h("summary", {}, title.replace(/:$/, "")), ...prose(table));
  return [h("section", { class: "group", id: "errors", "aria-labelledby": "errors-title" }, h("h2", { id: "errors-title" }, "Errors"), about, codes)];
}

const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
const endpoints = (count) => counted(count, "endpoint");

function showContents(groups, withErrors) {
  const link = ({ id, title }) => h("li", {}, h("a", { href: `#${id}` }, title));
  const list = (title, entries) => entries.length > 0 && h("div", {}, h("h2", {}, title), h("ul", {}, ...entries.map(link)));
  const [priced, own] = [true, false].map((priced) => groups.filter((group) => group.priced === priced));
  byId("contents").append(...[list("Metered routes", priced), list("The service", [...own, ...(withErrors ? [{ id: "errors", title: "Errors" }] : [])])].filter(Boolean));
}

/** `/` moves the focus to the search field, unless the user is typing. */
function searchByKey(event) {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  event.preventDefault();
  byId("filter").focus();
}

function filter() {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const group of document.querySelectorAll(".group")) {
    const operations = [...group.querySelectorAll(".operation")];
    for (const operation of operations) {
      operation.hidden = !words.every((word) => operation.dataset.search.includes(word));
      count += operation.hidden ? 0 : 1;
    }
    group.hidden = words.length > 0 && operations.every((operation) => operation.hidden);
    openForSearch(group.querySelector(".endpoints-more"), words.length > 0);
  }
  const guides = searchGuides(words, filter);
  const found = [guides > 0 && counted(guides, "guide"), (count > 0 || guides === 0) && endpoints(count)].filter(Boolean);
  byId("docs-status").textContent = words.length > 0 ? found.join(", ") : "";
}

/** Opens collapsed endpoints during a search, and restores them afterwards. */
function openForSearch(more, isSearching) {
  if (!more) return;
  if (isSearching) {
    more.dataset.before ??= String(more.open);
    more.open = true;
  } else if (more.dataset.before) {
    more.open = more.dataset.before === "true";
    delete more.dataset.before;
  }
}

function openNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const more = named?.closest(".endpoints-more") ?? named?.querySelector(":scope > .endpoints-more");
  if (more) more.open = true;
  if (named instanceof HTMLDetailsElement) named.open = true;
  named?.scrollIntoView();
}

// A page from the back/forward cache may have been signed in when it was left, and be signed out now.
addEventListener("pageshow", (event) => event.persisted && location.reload());
start();
