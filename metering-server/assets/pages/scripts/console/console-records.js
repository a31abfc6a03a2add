// Payments that were credited.

import { admin, query } from "/assets/console-api.js";
import { STATES, USES, accountLink, paid, rate, stateTag, worth } from "/assets/console-credited.js";
import { DAYS, filtered, isInDays } from "/assets/console-filter.js";
import { openPayment } from "/assets/console-payment.js";
import { parts } from "/assets/console-rows.js";
import { time } from "/assets/console-time.js";
import { fromUnits, group, plural, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { transaction } from "/assets/steps.js";
import { table } from "/assets/table.js";

/** The filters of a list of payments. */
export const FIELDS = [{ name: "state", label: "State", options: [["", "All"], ...Object.entries(STATES).map(([state, { name }]) => [state, name])] }, ...DAYS];

const CSV = {
  name: "payments",
  columns: ["recorded_at", "mined_at", "chain_id", "block_number", "tx_hash", "payer", "amount", "token", "org_id", "agent_name", "used_as", "plan_id", "state", "value_amount", "value_currency", "value_rate", "value_rate_source", "value_rate_as_of", "processor", "processor_id"],
  cells: (payment) => [
    payment.recorded_at,
    payment.mined_at,
    payment.chain_id,
    payment.block_number,
    payment.tx_hash,
    payment.payer_address,
    payment.amount_human ?? payment.amount_atomic,
    payment.amount_human === null ? payment.token_contract : payment.token_symbol,
    payment.org_id,
    payment.agent_name ?? "",
    payment.used_as,
    payment.plan_id,
    payment.state,
    payment.value?.amount,
    payment.value?.currency,
    payment.value?.rate,
    payment.value?.rate_source,
    payment.value?.rate_as_of,
    payment.processor ?? "",
    payment.processor_id ?? "",
  ],
};

/** A table of payments. */
export const paymentTable = (payments, { accounts = false } = {}) => table("Payments credited", columnsOf(accounts), payments.map((payment) => row(payment, accounts)));

/** More decimals than any token has. */
const PLACES = 36;

/** A table of payments with its totals, and a legend of their states. */
const listed = (payments, options) => h("div", {}, paymentTable(payments, options), h("p", { class: "soft payments-total" }, totals(payments)), ...meanings(payments));

const meanings = (payments) =>
  Object.entries(STATES)
    .filter(([name, { means }]) => means && payments.some(({ state }) => state === name))
    .map(([, { means }]) => h("p", { class: "hint" }, means));

/** The totals, by token and by currency of the value. Amounts of different tokens are never added up. */
function totals(payments) {
  const kept = payments.filter(({ state }) => state !== "reversed");
  const count = String(payments.length);
  const reversed = payments.length > kept.length ? ` Without ${payments.length - kept.length} reversed.` : "";
  const named = kept.filter(({ amount_human: amount }) => amount !== null);
  const unnamed = kept.length > named.length ? [`${kept.length - named.length} in tokens without a plan`] : [];
  const where = ({ processor, chain_id: chain }) => (processor ? `by ${processor}` : `on chain ${chain}`);
  const tokens = added(named.map((payment) => [`${payment.token_symbol} ${where(payment)}`, payment.amount_human]));
  const values = added(kept.filter(({ value }) => value && value.amount !== null).map(({ value }) => [value.currency, value.amount]));
  const sums = [...tokens, ...unnamed].join(", ");
  return `${group(count)} ${plural(count, "payment")} shown${sums ? `: ${sums}` : ""}${values.length > 0 ? `; with a value, ${values.join(" and ")}` : ""}.${reversed}`;
}

/** The sums of amounts by their unit, as text. */
function added(amounts) {
  const sums = new Map();
  for (const [unit, amount] of amounts) sums.set(unit, (sums.get(unit) ?? 0n) + toUnits(amount, PLACES));
  return [...sums].map(([unit, sum]) => `${group(fromUnits(sum, PLACES))} ${unit}`);
}

function columnsOf(accounts) {
  const columns = [{ name: "Recorded (UTC)", head: true }, { name: "Transaction" }, { name: "Paid", number: true }, accounts && { name: "Account" }, { name: "Used as" }, { name: "State" }];
  return columns.filter(Boolean);
}

/** The time of a payment, which opens all about it. */
const opener = (payment) =>
  h("button", { class: "link-button", type: "button", "data-payment": payment.tx_hash, on: { click: () => openPayment(payment) } }, time(payment.recorded_at), h("span", { class: "quietly-there" }, `, payment ${payment.processor_id ?? payment.tx_hash}`));

function row(payment, accounts) {
  const cells = [
    opener(payment),
    payment.processor
      ? [h("span", { class: "mono break" }, payment.processor_id), h("span", { class: "under" }, payment.processor)]
      : [transaction(payment.tx_hash), h("span", { class: "under" }, `Chain ${payment.chain_id}, block ${payment.block_number}`)],
    [paid(payment), payment.value && h("span", { class: "under", title: rate(payment.value) }, worth(payment.value))],
    accounts && accountLink(payment.org_id, payment.agent_name),
    [USES[payment.used_as] ?? payment.used_as, h("span", { class: "under" }, payment.plan_id ?? "without a plan")],
    stateTag(payment.state),
  ];
  return cells.filter((cell) => cell !== false);
}

/** The payments of an account, newest first. The service sends all of them, in the order credited. */
export async function ownRecords({ org_id: id }) {
  const { payments } = await admin(`/accounts/${id}/payments`);
  const newest = payments.reverse();
  const list = ({ state, ...days }) =>
    parts({
      load: async () => ({ items: newest.filter((payment) => (!state || payment.state === state) && isInDays(payment.recorded_at, days)), next: null }),
      empty: newest.length > 0 ? "No payment matches." : "No payment was credited to this account.",
      draw: (items) => listed(items),
      csv: { ...CSV, name: `payments-${id}` },
    });
  return h("div", {}, ...(await filtered({ label: "Payments", fields: FIELDS, list, prefix: "payments" })));
}

/** The payments of all accounts that match, newest first. */
export function records(filter) {
  return parts({
    load: async (after) => {
      const { payments, agent_names: names, next } = await admin(`/payments${query({ ...filter, order: "newest", after, limit: 50 })}`);
      return { items: payments.map((payment) => ({ ...payment, agent_name: names?.[payment.org_id] })), next: next ?? null };
    },
    empty: Object.values(filter).some(Boolean) ? "No payment matches." : "No payment was credited yet.",
    more: "Show older payments",
    draw: (payments) => listed(payments, { accounts: true }),
    csv: CSV,
  });
}
