// Payments that were credited.

import { admin, query } from "/assets/console-api.js";
import { DAYS, filtered, isInDays } from "/assets/console-filter.js";
import { parts } from "/assets/console-rows.js";
import { time } from "/assets/console-time.js";
import { fromUnits, group, plural, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { transaction } from "/assets/steps.js";
import { table } from "/assets/table.js";

const USES = { pay_signup: "Signup", topup: "Top-up", assigned: "Assigned", processor: "Processor" };
/** Each state: its name, its colour, and an explanation if it needs one. */
const STATES = {
  unsettled: { name: "Not final", tag: "tag", means: "Not final: the credits are there, but the chain could still replace the payment's block. They are taken back if the payment is then missing." },
  final: { name: "Final", tag: "tag tag-good" },
  reversed: { name: "Reversed", tag: "tag tag-bad", means: "Reversed: the payment was removed from its chain, refunded or disputed, and its credits were taken back." },
};

/** The filters of a list of payments. */
export const FIELDS = [{ name: "state", label: "State", options: [["", "All"], ...Object.entries(STATES).map(([state, { name }]) => [state, name])] }, ...DAYS];

/** The amount in tokens; in the smallest unit when the token is not known. */
export function paid({ amount_human: amount, token_symbol: symbol, amount_atomic: atomic, token_contract: contract }) {
  if (atomic === null) return "unknown";
  return amount === null ? `${atomic} of ${contract}` : `${amount} ${symbol}`;
}

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

/** A link to an account, by its name if that is known. */
export function accountLink(id, name) {
  const href = `#/accounts/${id}`;
  return name ? [h("a", { href, class: "break" }, name), h("span", { class: "under id" }, id)] : h("a", { href, class: "id" }, id);
}

function columnsOf(accounts) {
  const columns = [{ name: "Recorded (UTC)", head: true }, { name: "Transaction" }, { name: "Paid", number: true }, accounts && { name: "Account" }, { name: "Used as" }, { name: "State" }];
  return columns.filter(Boolean);
}

const rate = ({ rate: one, rate_source: source, rate_as_of: at }) => (one === null ? "No exchange rate was known" : `Rate ${one}, ${source}, ${at}`);

const stateTag = (state) => {
  const { name, tag, means } = STATES[state] ?? { name: state, tag: "tag" };
  return h("span", { class: tag, title: means }, name);
};

function row(payment, accounts) {
  const cells = [
    time(payment.recorded_at),
    payment.processor
      ? [h("span", { class: "mono break" }, payment.processor_id), h("span", { class: "under" }, payment.processor)]
      : [transaction(payment.tx_hash), h("span", { class: "under" }, `Chain ${payment.chain_id}, block ${payment.block_number}`)],
    [paid(payment), payment.value && h("span", { class: "under", title: rate(payment.value) }, payment.value.amount === null ? `no value in ${payment.value.currency}` : `${payment.value.amount} ${payment.value.currency}`)],
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
