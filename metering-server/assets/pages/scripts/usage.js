// The USAGE tab: the account's balance, and what it was spent on.

import { chart } from "/assets/chart.js";
import { amount, drums, group, plural, toUnits } from "/assets/decimal.js";
import { h, s } from "/assets/dom.js";
import { sampleUrl, snippet } from "/assets/secret.js";
import { longTable, table } from "/assets/table.js";

/** The number of days shown. */
export const DAYS = 30;
/** How many rows of recent activity, and how many endpoints, are shown at first. */
const FIRST = 12;
const FIRST_ENDPOINTS = 10;
const KINDS = {
  usage: "Usage",
  usage_refund: "Refund",
  signup_bonus: "Free credits",
  purchase_pay_signup: "Purchase",
  purchase_topup: "Top-up",
  adjustment: "Adjustment",
  payment_reversed: "Payment reversed",
  payment_restored: "Payment restored",
};

/** Fills the tab. `now` is the service's time; its days are UTC days. */
export function showUsage(panel, { balance, summary, activity, now }) {
  panel.replaceChildren(tiles(balance), byDay(summary, now), byEndpoint(summary), recent(activity));
}

function tile(title, id, ...content) {
  return h("section", { class: "tile", "aria-labelledby": id }, h("h2", { id }, title), ...content);
}

function tiles(balance) {
  const meter = h("p", { class: "drums", id: "balance" });
  drums(meter, balance.credit_balance, 4);
  const { requests_per_minute: minute, requests_per_day: day } = balance.rate_limits;
  const cap = (count, window) => (count === "0" ? `No limit per ${window}` : `${group(count)} a ${window}`);
  const bought = balance.total_credits_purchased;
  const granted = balance.total_credits_granted;
  return h(
    "div",
    { class: "tiles" },
    tile("Balance", "balance-title", meter, h("p", { class: "soft" }, amount(balance.credit_balance), ` ${plural(balance.credit_balance, "credit")}`)),
    tile(
      "Lifetime used",
      "used-title",
      h("p", { class: "figure", id: "lifetime-used" }, amount(balance.total_credits_used)),
      h("p", { class: "soft" }, "of ", amount(bought), " bought and ", amount(granted), " granted"),
    ),
    tile(
      "Rate limits",
      "limits-title",
      h("p", { class: "figure", id: "rate-limits" }, cap(minute, "minute")),
      h("p", { class: "soft" }, cap(day, "UTC day")),
    ),
  );
}

function byDay(summary, now) {
  const known = new Map(summary.by_day.map((entry) => [entry.day, entry]));
  const days = Array.from({ length: DAYS }, (_, back) => {
    const day = new Date(now.getTime() - (DAYS - 1 - back) * 86_400_000).toISOString().slice(0, 10);
    const entry = known.get(day);
    return { day, calls: entry?.usage_events ?? "0", credits: entry?.credits_used ?? "0" };
  });
  const section = h("section", { "aria-labelledby": "by-day-title" }, h("h2", { id: "by-day-title" }, "Usage by day"));
  if (known.size === 0) {
    section.append(
      h(
        "div",
        { class: "card", id: "no-usage" },
        h("h3", {}, "No calls yet"),
        h("p", { class: "soft" }, "Your first call will appear here as soon as it is charged."),
        snippet([`curl -H "Authorization: Bearer $API_KEY" ${sampleUrl()}`]),
      ),
    );
    return section;
  }
  const rows = [...days].reverse().filter((day) => known.has(day.day));
  const columns = [{ name: "Day", head: true }, { name: "Calls", number: true }, { name: "Credits used", number: true }];
  const cells = rows.map((day) => [day.day, group(day.calls), amount(day.credits)]);
  const list = table(`Usage by day, last ${DAYS} days, UTC`, columns, cells, { stacks: false, scrolls: true });
  const total = { calls: summary.totals.usage_events, credits: summary.totals.credits_used };
  section.append(chart(days, total), list);
  return section;
}

function byEndpoint(summary) {
  if (summary.by_endpoint.length === 0) return h("span", { hidden: true });
  const most = summary.by_endpoint.reduce((top, { credits_used: used }) => (toUnits(used) > top ? toUnits(used) : top), 1n);
  const share = (used) => {
    const percent = Number((toUnits(used) * 1_000n) / most) / 10;
    const bar = s("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" }, s("rect", { width: Math.max(percent, 0.5), height: 4 }));
    return h("span", { class: "share" }, bar);
  };
  const columns = [{ name: "Route", head: true, route: true }, { name: "Method" }, { name: "Calls", number: true }, { name: "Credits", number: true }];
  const rows = summary.by_endpoint.map((entry) => [
    [entry.route_template, toUnits(entry.credits_used) > 0n ? share(entry.credits_used) : ""],
    entry.http_method,
    group(entry.call_count),
    amount(entry.credits_used),
  ]);
  return h(
    "section",
    { "aria-labelledby": "endpoints-title" },
    h("div", { class: "section-head" }, h("h2", { id: "endpoints-title" }, "Top endpoints"), h("p", { class: "soft" }, `Last ${DAYS} days`)),
    longTable(`Top endpoints, last ${DAYS} days`, columns, rows, FIRST_ENDPOINTS),
  );
}

function recent({ transactions }) {
  const columns = [{ name: "Time", head: true }, { name: "Type" }, { name: "Route", route: true }, { name: "Source" }, { name: "Amount", number: true }];
  const rows = transactions.map((entry) => [
    h("time", { datetime: entry.created_at, title: entry.created_at }, entry.created_at.slice(0, 19).replace("T", " ")),
    h("span", { "data-type": entry.type }, KINDS[entry.type] ?? entry.type),
    about(entry),
    entry.client_source ?? "",
    h("span", { class: entry.amount.startsWith("-") ? null : "good" }, amount(entry.amount, { sign: true })),
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
