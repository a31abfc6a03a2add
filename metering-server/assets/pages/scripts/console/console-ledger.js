// An account's ledger: every change of the balance except usage.

import { admin, query } from "/assets/console-api.js";
import { DAYS, filtered } from "/assets/console-filter.js";
import { rows } from "/assets/console-rows.js";
import { time } from "/assets/console-time.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { transaction } from "/assets/steps.js";

const KINDS = {
  signup_bonus: "Signup bonus",
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

const CSV = {
  name: "ledger",
  columns: ["id", "created_at", "type", "description", "amount", "tx_hash"],
  cells: ({ id, created_at: at, type, description, amount, tx_hash: hash }) => [id, at, type, description, amount, hash],
};

/** The ledger, newest entry first, of all days or of some. */
export async function ledger(account) {
  return h("div", {}, ...(await filtered({ label: "Ledger", fields: DAYS, list: (values) => entries(account, values) })));
}

function entries(account, days) {
  return rows({
    caption: "Ledger",
    columns: [{ name: "Time (UTC)", head: true }, { name: "Type" }, { name: "Description" }, { name: "Credits", number: true }],
    row: (entry) => [
      time(entry.created_at),
      KINDS[entry.type] ?? entry.type,
      [entry.description, entry.tx_hash && h("span", { class: "under" }, transaction(entry.tx_hash))].filter(Boolean),
      h("span", { class: entry.amount.startsWith("-") ? null : "good" }, figure(entry.amount, { sign: true })),
    ],
    load: async (after) => {
      const { entries: items, next } = await admin(`/accounts/${account.org_id}/ledger${query({ ...days, order: "newest", after, limit: 100 })}`);
      return { items, next };
    },
    empty: days.from || days.to ? "No entry in these days." : "The ledger is empty.",
    more: "Show earlier entries",
    csv: { ...CSV, name: `ledger-${account.org_id}` },
  });
}
