// Revenue by chain, day and plan. Amounts of different tokens are never added up.

import { bar, largest } from "/assets/bar.js";
import { chart } from "/assets/chart.js";
import { chainName } from "/assets/console-chains.js";
import { dayBefore } from "/assets/days.js";
import { fromUnits, group, plural, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { table } from "/assets/table.js";

const COLUMNS = [{ name: "Plan", head: true }, { name: "Payments", number: true }, { name: "Revenue", number: true }, { name: "Credits", number: true }];
/** More decimals than any token has. */
const PLACES = 36;

/** The section: for each chain and token, a chart by day and a table with a bar for each plan. `count` is the number of days. */
export function sales({ sales: rows, revenue, to }, count, chains) {
  const title = h("h2", { id: "sales-title" }, "Revenue");
  if (rows.length === 0) return h("section", { "aria-labelledby": "sales-title", id: "sales" }, title, h("p", { class: "soft" }, "No payments in these days."));
  const tokens = Map.groupBy ? Map.groupBy(rows, key) : grouped(rows);
  return h("section", { "aria-labelledby": "sales-title", id: "sales" }, title, ...[...tokens.values()].map((sold) => token(sold, chains, byDay(revenue.filter((row) => key(row) === key(sold[0])), to, count))));
}

const key = (row) => `${row.chain_id} ${row.token_contract}`;

/** `Map.groupBy`, for browsers from before 2024. */
function grouped(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(key(row), [...(groups.get(key(row)) ?? []), row]);
  return groups;
}

/** What was paid on each of the last `count` days, oldest first. */
function byDay(rows, to, count) {
  const known = new Map(rows.map((row) => [row.day, row]));
  const last = new Date(`${to}T00:00:00Z`);
  return Array.from({ length: count }, (_, place) => dayBefore(last, count - 1 - place)).map((day) => ({ day, credits: known.has(day) ? amount(known.get(day)) : "0", payments: known.get(day)?.payments ?? "0" }));
}

/** The chart of those days, which reads every amount as credits, and its table. */
function daily(days, name, total, unit) {
  const read = (title, { credits }) => [h("strong", {}, title), ` · ${group(credits)} ${unit}`];
  const busy = [...days].reverse().filter(({ payments }) => payments !== "0");
  const cells = busy.map(({ day, credits, payments }) => [day, group(payments), `${group(credits)} ${unit}`]);
  const numbers = table(`Revenue in ${name}, by day`, [{ name: "Day", head: true }, { name: "Payments", number: true }, { name: "Revenue", number: true }], cells, { stacks: false, scrolls: true });
  return [chart(days, { credits: total }, "credits", { read, what: `revenue in ${name}` }), h("details", { class: "table-details" }, h("summary", {}, "Show as a table", h("span", { class: "quietly-there" }, `: revenue in ${name}`)), numbers)];
}

function token(sold, chains, days) {
  const [{ chain_id: chain, token_symbol: symbol, token_contract: contract }] = sold;
  const amounts = sold.map(amount);
  const name = `${symbol ?? contract} on ${chainName(chains, chain)}`;
  const total = fromUnits(amounts.map((text) => toUnits(text, PLACES)).reduce((sum, units) => sum + units, 0n), PLACES);
  const count = String(sold.map(({ payments }) => BigInt(payments)).reduce((sum, payments) => sum + payments, 0n));
  const most = largest(amounts);
  const unit = symbol && sold[0].amount_human !== null ? symbol : "smallest units";
  const rows = sold.map((row, place) => [
    [row.plan_id ?? "Assigned without a plan", bar(amounts[place], most)],
    group(row.payments),
    `${group(amounts[place])} ${unit}`,
    figure(row.credits),
  ]);
  return h(
    "div",
    { class: "revenue" },
    h("h3", {}, name),
    h("p", { class: "soft" }, h("strong", {}, `${group(total)} ${unit}`), ` in ${group(count)} ${plural(count, "payment")}`),
    ...(days.some(({ payments }) => payments !== "0") ? daily(days, name, total, unit) : []),
    table(`Revenue in ${name}, by plan`, COLUMNS, rows),
  );
}

/** In tokens, or in the smallest unit when the token's decimals are not known. */
const amount = (row) => row.amount_human ?? row.amount_atomic;
