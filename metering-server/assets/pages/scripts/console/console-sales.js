// Revenue: in a currency by day, where payments have a value in one, and by chain and plan. Amounts of different tokens are
// never added up.

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

/**
 * The section: a chart by day for each currency in which payments have a value, then for each chain and token a table with
 * a bar for each plan. Without such a value, each token has a chart by day. `count` is the number of days.
 */
export function sales({ sales: rows, revenue, values, to }, count, chains) {
  const title = h("h2", { id: "sales-title" }, "Revenue");
  const section = (...parts) => h("section", { "aria-labelledby": "sales-title", id: "sales" }, title, ...parts);
  if (rows.length === 0) return section(h("p", { class: "soft" }, "No payments in these days."));
  const currencies = [...byCurrency(values).values()];
  const paid = total(revenue);
  const tokens = [...grouped(rows, key).values()];
  const days = (sold) => (currencies.length > 0 ? [] : byDay(revenue.filter((row) => key(row) === key(sold[0])), to, count));
  return section(...currencies.map((worth) => inCurrency(worth, byDay(worth, to, count), paid)), ...tokens.map((sold) => token(sold, chains, days(sold))));
}

const key = (row) => `${row.chain_id} ${row.token_contract}`;

/** `Map.groupBy`, which browsers from before 2024 lack. */
function grouped(rows, name) {
  const groups = new Map();
  for (const row of rows) groups.set(name(row), [...(groups.get(name(row)) ?? []), row]);
  return groups;
}

/** The values of payments, by currency. */
export const byCurrency = (values) => grouped(values, ({ currency }) => currency);

/** The number of payments in some rows. */
export const total = (rows) => rows.reduce((sum, { payments }) => sum + BigInt(payments), 0n);

/** The sum of amounts, with as many decimals as they have: 5.00 EUR. */
export function added(rows) {
  const text = fromUnits(rows.map((row) => toUnits(amount(row), PLACES)).reduce((sum, units) => sum + units, 0n), PLACES);
  const decimals = Math.max(0, ...rows.map(({ amount: one }) => one?.split(".")[1]?.length ?? 0));
  const [whole, fraction = ""] = text.split(".");
  return decimals > fraction.length ? `${whole}.${fraction.padEnd(decimals, "0")}` : text;
}

/** The value of payments in a currency; `paid` is how many there are in all. */
function inCurrency(worth, days, paid) {
  const [{ currency }] = worth;
  const count = String(total(worth));
  const rest = paid - total(worth);
  const others = rest > 0n ? `. ${group(String(rest))} more ${rest === 1n ? "has" : "have"} no value in ${currency}.` : "";
  return h("div", { class: "revenue", "data-currency": currency }, h("h3", {}, `In ${currency}`), h("p", { class: "soft" }, h("strong", {}, `${group(added(worth))} ${currency}`), ` in ${group(count)} ${plural(count, "payment")}${others}`), ...daily(days, currency, added(worth), currency));
}

/** The amount paid on each of the last `count` days, oldest first. */
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
  const [sum, count] = [added(sold), String(total(sold))];
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
    h("p", { class: "soft" }, h("strong", {}, `${group(sum)} ${unit}`), ` in ${group(count)} ${plural(count, "payment")}`),
    ...(days.some(({ payments }) => payments !== "0") ? daily(days, name, sum, unit) : []),
    table(`Revenue in ${name}, by plan`, COLUMNS, rows),
  );
}

/** In a currency, in tokens, or in the smallest unit when the token's decimals are not known. */
const amount = (row) => row.amount ?? row.amount_human ?? row.amount_atomic;
