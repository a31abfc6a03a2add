// Credits an unclaimed payment to an account.

import { sentence } from "/assets/api.js";
import { act, admin, exact } from "/assets/console-api.js";
import { paid } from "/assets/console-credited.js";
import { ask } from "/assets/console-dialog.js";
import { checks } from "/assets/field.js";
import { byId, h } from "/assets/dom.js";

/** The entry for a number of credits in the list of plans. No plan has this id. */
const CREDITS = "";

/** Asks for the account and the value of the payment. `done` is called when it is credited. */
export async function askToAssign(payment, done) {
  let plans;
  try {
    ({ plans } = await admin("/plans"));
  } catch (error) {
    byId("arrivals-status").textContent = sentence(error);
    return;
  }
  const options = plans.filter((plan) => plan.chain_id === payment.chain_id).map((plan) => [plan.id, `${plan.label}: ${plan.token_amount} ${plan.token_symbol}`]);
  ask({
    title: "Assign a payment",
    about: [h("dl", { class: "facts" }, ...fact("Paid", paid(payment)), ...fact("Transaction", h("span", { class: "mono break" }, payment.tx_hash)))],
    fields: [
      { name: "account", label: "Account", hint: "Its id, which starts with org_.", value: payment.org_ids[0] ?? "", check: (text) => (/^org_\w+$/.test(text) ? "" : "Enter the account's id, which starts with org_.") },
      { name: "plan_id", label: "Worth", value: options[0]?.[0] ?? CREDITS, options: [...options, [CREDITS, "A number of credits"]] },
      { name: "credits", label: "Credits", inputmode: "decimal", check: checks.credits, when: (other) => other("plan_id") === CREDITS },
      ...(payment.quote ? [{ name: "despite_quote", label: "Assign it although it pays a quote", box: true }] : []),
    ],
    reason: { hint: "Goes into the audit log, and into the ledger, which the account's owner reads." },
    confirm: "Assign payment",
    send: ({ account, plan_id: plan, credits, despite_quote = false, reason }) =>
      act("/payments/assign", { chain: payment.chain, tx_hash: payment.tx_hash, account, plan_id: plan || undefined, credits: plan ? undefined : exact(credits), despite_quote, reason }),
    done: () => {
      byId("said").replaceChildren(h("p", { class: "notice notice-good", id: "message" }, "Assigned the payment."));
      done();
    },
  });
}

const fact = (name, value) => [h("div", {}, h("dt", {}, name), h("dd", {}, value))];
