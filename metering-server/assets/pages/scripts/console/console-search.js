// One search for everything. The service recognizes the kind of the text by its form.

import { accountTable } from "/assets/console-accounts.js";
import { admin, query } from "/assets/console-api.js";
import { fragmentQuery } from "/assets/console-filter.js";
import { paymentTable } from "/assets/console-records.js";
import { explained } from "/assets/console-request.js";
import { parts } from "/assets/console-rows.js";
import { time } from "/assets/console-time.js";
import { byId, complain, h } from "/assets/dom.js";
import { table } from "/assets/table.js";

/** What each kind of search says when it finds nothing, and where to look instead. */
const NONE = {
  account: "No account has this id.",
  email: "No active account has this email address, or it is not verified yet. Accounts can also be filtered by a part of an address.",
  wallet: "No active account belongs to this wallet. An unclaimed payment from it is listed under Payments.",
  name: "No agent's name begins with this. Ids are searched in full: org_, key_ and req_ with all their digits.",
  key: "No key has this id. Keys that were deleted long ago are forgotten.",
  transaction: "No payment with this transaction was credited. An unclaimed one is listed under Payments.",
  receipt: "No receipt has this number.",
  payment: "No payment of this processor has this id. The name is the one that it was reported with, such as stripe:pi_1.",
};
const KEYS = [{ name: "Key", head: true }, { name: "Account" }, { name: "Created (UTC)" }, { name: "Deleted (UTC)" }];

/** Secrets are never sent, because the search text is in the URL. */
const secretProblem = (text) => {
  if (/sk_live_/.test(text)) return "This is the secret of a key. Search for the key's id, which starts with key_.";
  return /opr_\w{20}/.test(text) ? "This is the token of an operator, which cannot be searched for." : "";
};

/** The form in the head of the page. Pressing / moves the focus there, except in a field. */
export function startSearch() {
  const [form, input] = [byId("find"), byId("find-text")];
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim();
    const problem = secretProblem(text);
    complain(input, problem);
    if (problem) input.value = "";
    if (text && !problem) location.hash = `#/search${query({ q: text })}`;
  });
  input.addEventListener("input", () => complain(input, ""));
  addEventListener("hashchange", () => {
    if (!location.hash.startsWith("#/search") && document.activeElement !== input) input.value = "";
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, select, textarea, dialog");
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping || form.hidden) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
}

/** The view. */
export async function search() {
  const { q = "" } = fragmentQuery();
  const title = "Search";
  if (!q || secretProblem(q)) return { title, body: [h("p", { class: "soft empty" }, secretProblem(q) || "Enter an account, email address, wallet, agent name, key id, transaction, receipt, processor's payment or request.")] };
  byId("find-text").value = q;
  const first = await admin(`/search${query({ q })}`);
  const { kind, keys, payments, requests, note } = first;
  const found = [
    requests.length > 0 && section("Why it was charged", "requests", ...requests.map(explained)),
    keys.length > 0 && section("Key", "keys", table("Keys", KEYS, keys.map(keyRow))),
    payments.length > 0 && section("Payment", "payments", paymentTable(payments, { accounts: true })),
  ].filter(Boolean);
  const isFound = first.accounts.length > 0 || found.length > 0;
  if (isFound || first.next) found.push(section("Account", "accounts", await accountList(q, first)));
  if (note) found.unshift(h("p", { class: "soft empty", id: "search-note" }, note));
  return { title, lead: ["For ", h("strong", { class: "break" }, q)], body: [h("div", { class: "sections", id: "search-results" }, ...(found.length > 0 ? found : [h("p", { class: "soft empty" }, NONE[kind] ?? "Nothing was found.")]))] };
}

const section = (title, name, ...content) => h("section", { "aria-labelledby": `found-${name}`, "data-found": name }, h("h2", { id: `found-${name}` }, title), ...content);

/** The accounts; a name may match more than fit into one response. */
function accountList(q, first) {
  return parts({
    load: async (after) => {
      const { accounts: items, next } = after === undefined ? first : await admin(`/search${query({ q, after })}`);
      return { items, next };
    },
    empty: "None.",
    more: "Show older accounts",
    draw: accountTable,
  });
}

function keyRow({ org_id: account, key_id: id, name, created_at: created, deleted_at: deleted }) {
  return [[name, h("code", { class: "under" }, id)], h("a", { class: "id", href: `#/accounts/${account}?tab=keys` }, account), time(created), deleted ? time(deleted) : "–"];
}
