// An account's charges, newest first, with the balance after each entry and the price version of its time: the page
// that answers "why was I charged this?".

import { admin } from "/assets/console-api.js";
import { csvButton } from "/assets/console-csv.js";
import { DAYS, filterInput, isInDays } from "/assets/console-filter.js";
import { time } from "/assets/console-time.js";
import { fromUnits, group, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { longTable } from "/assets/table.js";

/** The maximum that the service lists, and how many rows are shown at first. */
const MOST = 1_000;
const FIRST = 50;
/** How often the entries are read again while charges change the balance. */
const ATTEMPTS = 3;

/** The filters, which apply to the charges that are loaded. */
const FIELDS = [{ name: "text", label: "Filter by route, key or time", id: "charges-filter", "aria-describedby": "charges-hint" }, ...DAYS];
const KINDS = { usage: "Charge", usage_refund: "Refund", hold_expired: "Charged on expiry", hold_released: "Released" };
const COLUMNS = [{ name: "Time (UTC)", head: true }, { name: "What" }, { name: "Route", route: true }, { name: "Key" }, { name: "Amount", number: true }, { name: "Balance after", number: true }, { name: "Price version" }];
const CSV = ["time", "type", "method", "path", "route", "calls", "key_id", "key_name", "source", "amount", "balance_after", "price_version"];

/** The tab. */
export async function charges({ org_id: id }) {
  const [{ versions }, { entries, isExact }] = await Promise.all([admin("/catalogue/versions"), read(id)]);
  if (entries.length === 0) return h("p", { class: "soft empty" }, "Nothing was charged yet.");
  const rows = entries.map((entry) => ({ ...entry, version: inForce(versions, entry.created_at) }));
  let shown = rows;
  const place = h("div", {});
  const count = h("p", { class: "status", id: "charges-found", role: "status" });
  const inputs = FIELDS.map((field) => filterInput({ id: `charges-${field.name}`, ...field }));
  const form = h("form", { role: "search", "aria-label": "Charges", class: "search-form filter-form" }, ...inputs.map(({ element }) => element));
  const show = () => place.replaceChildren(shown.length > 0 ? longTable("Charges", COLUMNS, shown.map(row), FIRST) : h("p", { class: "soft empty" }, "No charge matches."));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    const { text, ...days } = Object.fromEntries(inputs.map(({ name, control }) => [name, control.value.trim().toLowerCase()]));
    shown = rows.filter((entry) => words(entry).includes(text) && isInDays(entry.created_at, days));
    count.textContent = text || days.from || days.to ? `${shown.length} of ${rows.length}` : "";
    show();
  });
  show();
  const unrecorded = rows.some((entry) => entry.version === null && entry.route_template) ? " Where no price version is recorded, the charge is older than the first one." : "";
  // The service keeps only the newest.
  const older = entries.length === MOST ? " Older charges are in the Usage tab, added up by day." : "";
  const note = isExact ? "The balance after an entry counts credits as used when they were charged, not when they were held." : "The account is being charged right now, so the balance after each entry is left out.";
  return h(
    "div",
    { class: "sections-small" },
    form,
    h("p", { class: "hint", id: "charges-hint" }, "Requests to the same route at the same moment may share an entry. A request is found by its id in the search above."),
    count,
    place,
    h("p", { class: "soft" }, note, unrecorded, older),
    h("div", { class: "list-tools" }, csvButton(`charges-${id}`, CSV, () => shown.map(cells))),
  );
}

/** The entries with the balance after each, if it did not change while they were read. */
async function read(id) {
  for (let attempt = 1; ; attempt += 1) {
    const before = unspent(await admin(`/accounts/${id}`));
    const { transactions } = await admin(`/accounts/${id}/activity?limit=${MOST}`);
    const isExact = unspent(await admin(`/accounts/${id}`)) === before;
    if (isExact || attempt === ATTEMPTS) return { entries: withBalances(transactions, isExact ? before : null), isExact };
  }
}

/** An account's balance plus its holds: the entries add up to this. */
const unspent = (account) => toUnits(account.credit_balance) + toUnits(account.credits_held);

function withBalances(entries, newest) {
  let after = newest;
  return entries.map((entry) => {
    const balance = after === null ? null : fromUnits(after);
    if (after !== null) after -= toUnits(entry.amount);
    return { ...entry, balance };
  });
}

/** The number of the version in force at a time: versions are newest first. Nothing before the first one. */
function inForce(versions, at) {
  const past = versions.filter(({ since, cancelled_at: cancelled }) => !cancelled && since <= at);
  return past.reduce((newest, version) => (newest && newest.since > version.since ? newest : version), null)?.number ?? null;
}

const words = (entry) => [entry.created_at, entry.http_method, entry.request_path, entry.route_template, entry.model, entry.description, entry.key_id, entry.key_name].join(" ").toLowerCase();

function row(entry) {
  const path = entry.request_path ?? entry.route_template;
  const model = entry.model ? ` · ${entry.model}` : "";
  const several = entry.calls !== "1" && entry.calls !== "0" && h("span", { class: "under route-words" }, `${group(entry.calls)} requests`);
  const template = path !== entry.route_template && h("span", { class: "under" }, entry.route_template);
  const route = entry.route_template && [`${entry.http_method} ${path}${model}`, template, several].filter(Boolean);
  return [
    time(entry.created_at),
    h("span", { "data-type": entry.type }, KINDS[entry.type] ?? "Ledger"),
    route ?? entry.description ?? "",
    entry.key_id ? [entry.key_name && h("span", { class: "break" }, entry.key_name), h("span", { class: entry.key_name ? "under mono" : "mono" }, entry.key_id)].filter(Boolean) : "",
    h("span", { class: toUnits(entry.amount) > 0n ? "good" : null }, figure(entry.amount, { sign: true })),
    entry.balance === null ? "–" : figure(entry.balance),
    entry.route_template ? priced(entry) : "–",
  ];
}

const priced = ({ version }) => (version === null ? h("span", { class: "soft" }, "None recorded") : h("a", { href: `#/prices/${version}` }, `Version ${version}`));

const cells = (entry) => [entry.created_at, entry.type, entry.http_method, entry.request_path, entry.route_template, entry.calls, entry.key_id, entry.key_name, entry.client_source, entry.amount, entry.balance, entry.route_template && entry.version];
