// The form for a plan: a new one, or new values for one that exists.

import { act, exact } from "/assets/console-api.js";
import { ask } from "/assets/console-dialog.js";
import { checks, optional } from "/assets/field.js";
import { reload } from "/assets/console-router.js";

const NATIVE = "0x0000000000000000000000000000000000000000";
const address = (text) => (/^0x[0-9a-fA-F]{40}$/.test(text) ? "" : "Enter an address: 0x and 40 hexadecimal digits.");
const decimal = (text) => (/^\d+(\.\d+)?$/.test(text) && /[1-9]/.test(text) ? "" : "Enter a number above zero.");
const percent = (text) => (/^\d{1,2}$/.test(text) ? "" : "Enter a whole number below 100.");
const order = (text) => (/^-?\d{1,9}$/.test(text) ? "" : "Enter a whole number.");
const id = (text) => (/^[A-Za-z0-9_.-]{1,64}$/.test(text) ? "" : "Use 1 to 64 letters, digits, dots, hyphens or underscores.");
const isToken = (other) => other("payment_kind") === "erc20";

/** Asks for a plan. `plan` is the one to change, or null. */
export function askForPlan(plan, chains) {
  const now = plan ?? { chain_id: chains[0]?.chain_id ?? "", payment_kind: "erc20", token_decimals: "6", bonus_credits: "0", sort_order: "0", active: true };
  const known = chains.map((chain) => [chain.chain_id, `${chain.name} (${chain.chain_id})`]);
  const chain = known.length > 0 ? { options: known } : { inputmode: "numeric", check: checks.whole };
  // Another id or chain would be another plan.
  const key = [
    { name: "id", label: "Id", hint: "Programs use it. It cannot be changed later.", check: id },
    { name: "chain_id", label: "Chain", value: now.chain_id, ...chain },
  ];
  ask({
    title: plan ? `Edit ${plan.label}` : "New plan",
    fields: [
      ...(plan ? [] : key),
      { name: "label", label: "Name", value: now.label ?? "", maxlength: "128", check: checks.given },
      { name: "token_amount", label: "Price, in tokens", value: now.token_amount ?? "", inputmode: "decimal", check: decimal },
      { name: "token_symbol", label: "Token", hint: "Its symbol, such as USDC.", value: now.token_symbol ?? "", maxlength: "32", check: checks.given },
      { name: "payment_kind", label: "Paid in", value: now.payment_kind, options: [["erc20", "A token (ERC-20)"], ["native_value", "The chain's own coin"]] },
      { name: "token_contract", label: "The token's contract", value: now.token_contract && now.token_contract !== NATIVE ? now.token_contract : "", check: address, when: isToken },
      { name: "token_decimals", label: "The token's decimals", hint: "6 for USDC, 18 for most coins.", value: now.token_decimals, inputmode: "numeric", check: checks.whole },
      { name: "credits", label: "Credits", value: now.credits ?? "", inputmode: "decimal", check: checks.credits },
      { name: "bonus_credits", label: "Bonus credits", value: now.bonus_credits, inputmode: "decimal", check: checks.credit },
      { name: "description", label: "Description (optional)", value: now.description ?? "", maxlength: "1024" },
      { name: "offer", label: "Special offer (optional)", value: now.offer ?? "" },
      { name: "discount_percent", label: "Discount in percent (optional)", hint: "Only shown: the price is as above.", value: now.discount_percent ?? "", inputmode: "numeric", check: optional(percent) },
      { name: "sort_order", label: "Position in lists", hint: "The lowest comes first.", value: now.sort_order, inputmode: "numeric", check: order },
      { name: "active", label: "On sale", value: now.active, box: true },
    ],
    confirm: plan ? "Save plan" : "Create plan",
    send: ({ reason, ...values }) => act("/plans", { plan: written(plan, values), reason }, "PUT"),
    done: (_, { label }) => reload(plan ? `Saved ${label}.` : `Created ${label}.`),
  });
}

/** The plan as the service reads it. */
function written(plan, values) {
  return {
    ...values,
    id: plan?.id ?? values.id,
    chain_id: exact(plan?.chain_id ?? values.chain_id),
    token_contract: values.token_contract ?? NATIVE,
    token_decimals: exact(values.token_decimals),
    credits: exact(values.credits),
    bonus_credits: exact(values.bonus_credits),
    offer: values.offer || undefined,
    discount_percent: exact(values.discount_percent),
    // The recipient can be changed only in the store itself.
    recipient: plan?.recipient,
    sort_order: exact(values.sort_order),
  };
}
