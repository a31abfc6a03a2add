// Recent activity: the newest changes of the balance.

import { group, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { longTable } from "/assets/table.js";

/** How many rows are shown at first. */
const FIRST = 8;
/** What kinds of entries are called. An expired hold was charged because its cost was not reported in time. */
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
};

/** The section. `names` are the names of keys by id, if there is more than one key. */
export function activity({ transactions }, names = null) {
  const columns = [{ name: "Time", head: true }, { name: "Type" }, { name: "Route", route: true }, ...(names ? [{ name: "Key" }] : []), { name: "Source" }, { name: "Amount", number: true }];
  const rows = transactions.map((entry) => [
    h("time", { datetime: entry.created_at, title: entry.created_at }, entry.created_at.slice(0, 19).replace("T", " ")),
    h("span", { "data-type": entry.type }, KINDS[entry.type] ?? entry.type),
    about(entry),
    ...(names ? [names.get(entry.key_id) ?? entry.key_id ?? ""] : []),
    entry.client_source ?? "",
    h("span", { class: toUnits(entry.amount) > 0n ? "good" : null }, figure(entry.amount, { sign: true })),
  ]);
  const content = rows.length > 0 ? longTable("Recent activity", columns, rows, FIRST) : h("p", { class: "soft" }, "No activity yet.");
  return h(
    "section",
    { "aria-labelledby": "activity-title" },
    h("div", { class: "section-head" }, h("h2", { id: "activity-title" }, "Recent activity"), h("p", { class: "soft" }, "Times are UTC")),
    content,
  );
}

function about(entry) {
  const times = entry.calls === "1" || entry.calls === "0" ? "" : ` × ${group(entry.calls)}`;
  if (entry.route_template) return `${entry.http_method} ${entry.request_path ?? entry.route_template}${times}`;
  return entry.description ?? entry.plan_id ?? "";
}
