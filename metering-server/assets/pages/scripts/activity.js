// Recent activity: the newest changes of the balance. On a phone, each is two lines.

import { group, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { longTable, table } from "/assets/table.js";

/** How many rows are shown at first. */
const FIRST = 8;
/** The names of the kinds of entries. An expired hold was charged because its cost was not reported in time. */
const KINDS = {
  usage: "Usage",
  usage_refund: "Refund",
  hold_expired: "Charged on expiry",
  hold_released: "Released",
  signup_bonus: "Free credits",
  purchase_pay_signup: "Purchase",
  purchase_topup: "Top-up",
  purchase_imported: "Imported purchase",
  refill: "Refill",
  adjustment: "Adjustment",
  payment_reversed: "Payment reversed",
  payment_restored: "Payment restored",
  transfer_in: "Received",
  transfer_out: "Given",
};
const LAYOUT = { narrow: "two-lines" };

/** The section, when these are all the entries. */
export function activity({ transactions }) {
  const content = transactions.length > 0 ? longTable("Recent activity", columns(null), transactions.map((entry) => cells(entry, null)), FIRST, LAYOUT) : h("p", { class: "soft" }, "No activity yet.");
  return activitySection(content);
}

/** The section with some content. */
export function activitySection(...content) {
  return h(
    "section",
    { "aria-labelledby": "activity-title", id: "activity" },
    h("div", { class: "section-head" }, h("h2", { id: "activity-title" }, "Recent activity"), h("p", { class: "soft" }, "Times are UTC")),
    ...content,
  );
}

/** The table. `names` are the names of keys by id, if there is more than one key. */
export const activityTable = (entries, names) => table("Recent activity", columns(names), entries.map((entry) => cells(entry, names)), LAYOUT);

const columns = (names) => [{ name: "Time", head: true }, { name: "Type" }, { name: "Route", route: true }, ...(names ? [{ name: "Key" }] : []), { name: "Source" }, { name: "Amount", number: true }];

function cells(entry, names) {
  const key = names?.get(entry.key_id) ?? entry.key_id ?? "";
  return [
    timeOf(entry.created_at),
    h("span", { "data-type": entry.type }, KINDS[entry.type] ?? entry.type),
    h("span", { class: "what", title: about(entry) }, about(entry)),
    ...(names ? [h("span", { title: key }, key)] : []),
    entry.client_source ?? "",
    h("span", { class: toUnits(entry.amount) > 0n ? "good" : null }, figure(entry.amount, { sign: true })),
  ];
}

/** A time to the second; a phone shows only day and minute. */
function timeOf(text) {
  const [year, rest, second] = [text.slice(0, 5), text.slice(5, 16).replace("T", " "), text.slice(16, 19)];
  return h("time", { datetime: text, title: text }, h("span", { class: "year" }, year), rest, h("span", { class: "second" }, second));
}

function about(entry) {
  const times = entry.calls === "1" || entry.calls === "0" ? "" : ` × ${group(entry.calls)}`;
  if (entry.route_template) return `${entry.http_method} ${entry.request_path ?? entry.route_template}${entry.model ? ` · ${entry.model}` : ""}${times}`;
  return entry.description ?? entry.plan_id ?? "";
}
