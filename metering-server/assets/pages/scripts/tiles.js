// The tiles above the chart: balance, lifetime use and rate limits.

import { alertLine } from "/assets/balancealert.js";
import { group, plural, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { isPending } from "/assets/email.js";
import { figure } from "/assets/figure.js";
import { heldLine, isHolding } from "/assets/held.js";
import { rollTo } from "/assets/odometer.js";
import { runway } from "/assets/runway.js";

/** The balance shown last, and its account: the meter rolls from there when credits arrive. */
let last = { org: null, amount: null };

/** The tiles of an account. `recent` is a summary of at least the last eight days. `key` and `reload` change its alert. */
export function tiles(balance, recent, now, { key, reload }) {
  const meter = h("p", { class: "drums", id: "balance", tabindex: "0" });
  const unit = rollTo(meter, last.org === balance.org_id ? last.amount : null, balance.credit_balance, 4);
  last = { org: balance.org_id, amount: balance.credit_balance };
  const { requests_per_minute: minute, requests_per_day: day } = balance.rate_limits;
  const cap = (count, window) => (count === "0" ? `No limit per ${window}` : `${group(count)} a ${window}`);
  const [bought, granted] = [balance.total_credits_purchased, balance.total_credits_granted];
  return h(
    "div",
    { class: "tiles" },
    tile(
      "Balance",
      "balance-title",
      h("p", { class: "meter-line" }, meter, h("span", { class: "soft" }, `${unit} ${plural(balance.credit_balance, "credit")}`.trim())),
      h("p", { class: "soft", id: "runway" }, isPending(balance) && toUnits(balance.credit_balance) === 0n ? "Nothing yet." : runway(balance.credit_balance, recent.by_day, now)),
      isHolding(balance) && heldLine(balance),
      "alert_below" in balance && alertLine(balance, { key, reload }),
    ),
    tile(
      "Lifetime used",
      "used-title",
      h("p", { class: "figure", id: "lifetime-used" }, figure(balance.total_credits_used)),
      h("p", { class: "soft" }, "of ", figure(bought), " bought and ", figure(granted), " granted"),
    ),
    tile(
      "Rate limits",
      "limits-title",
      h("p", { class: "figure", id: "rate-limits" }, cap(minute, "minute")),
      h("p", { class: "soft" }, cap(day, "UTC day")),
      balance.tokens_per_minute !== "0" && h("p", { class: "soft" }, `${group(balance.tokens_per_minute)} tokens a minute`),
    ),
  );
}

function tile(title, id, ...content) {
  return h("section", { class: "tile", "aria-labelledby": id }, h("h2", { id }, title), ...content);
}
