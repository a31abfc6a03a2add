// Payments that were credited.

import { admin, query } from "/assets/console-api.js";
import { rows } from "/assets/console-rows.js";
import { time } from "/assets/console-time.js";
import { h } from "/assets/dom.js";
import { transaction } from "/assets/steps.js";

const USES = { pay_signup: "Signup", topup: "Top-up", assigned: "Assigned" };
const STATES = { final: "tag tag-good", reversed: "tag tag-bad" };

/** The amount in tokens; in the smallest unit when the token is not known. */
export function paid({ amount_human: amount, token_symbol: symbol, amount_atomic: atomic, token_contract: contract }) {
  if (atomic === null) return "unknown";
  return amount === null ? `${atomic} of ${contract}` : `${amount} ${symbol}`;
}

/** The list at `path`. `accounts` is whether it has payments of several accounts. */
export function records(path, { empty, accounts = false }) {
  const columns = [{ name: "Recorded (UTC)", head: true }, { name: "Transaction" }, { name: "Paid", number: true }, accounts && { name: "Account" }, { name: "Used as" }, { name: "State" }];
  return rows({
    caption: "Payments credited",
    columns: columns.filter(Boolean),
    row: (payment) =>
      [
        time(payment.recorded_at),
        [transaction(payment.tx_hash), h("span", { class: "under" }, `Chain ${payment.chain_id}, block ${payment.block_number}`)],
        paid(payment),
        accounts && h("a", { href: `#/accounts/${payment.org_id}`, class: "mono break" }, payment.org_id),
        [USES[payment.used_as] ?? payment.used_as, h("span", { class: "under" }, payment.plan_id ?? "without a plan")],
        h("span", { class: STATES[payment.state] ?? "tag" }, payment.state),
      ].filter((cell) => cell !== false),
    load: async (after) => {
      const { payments: items, next } = await admin(`${path}${query({ after, limit: 50 })}`);
      return { items, next: next ?? null };
    },
    empty,
    more: "Show more payments",
  });
}
