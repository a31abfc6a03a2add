// Revenue by chain and plan. Amounts of different tokens are never added up.

import { bar, largest } from "/assets/bar.js";
import { chainName } from "/assets/console-chains.js";
import { fromUnits, group, plural, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { table } from "/assets/table.js";

const COLUMNS = [{ name: "Plan", head: true }, { name: "Payments", number: true }, { name: "Revenue", number: true }, { name: "Credits", number: true }];
/** More decimals than any token has. */
const PLACES = 36;

/** The section: a table for each chain and token, with a bar for each plan. */
export function sales(rows, chains) {
  const title = h("h2", { id: "sales-title" }, "Revenue");
  if (rows.length === 0) return h("section", { "aria-labelledby": "sales-title", id: "sales" }, title, h("p", { class: "soft" }, "No payments in these days."));
  const tokens = Map.groupBy ? Map.groupBy(rows, key) : grouped(rows);
  return h("section", { "aria-labelledby": "sales-title", id: "sales" }, title, ...[...tokens.values()].map((sold) => token(sold, chains)));
}

const key = (row) => `${row.chain_id} ${row.token_contract}`;

/** `Map.groupBy`, for browsers from before 2024. */
function grouped(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(key(row), [...(groups.get(key(row)) ?? []), row]);
  return groups;
}

function token(sold, chains) {
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
    table(`Revenue in ${name}, by plan`, COLUMNS, rows),
  );
}

/** In tokens, or in the smallest unit when the token's decimals are not known. */
const amount = (row) => row.amount_human ?? row.amount_atomic;
