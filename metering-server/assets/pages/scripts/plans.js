// The plans on sale, as one table per chain.

import { callApi, sentence } from "/assets/api.js";
import { amount, group } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { table } from "/assets/table.js";

/** The chains with their plans, in the service's order. */
export function byChain({ plans, chains }) {
  const groups = chains.map((chain) => ({ chain, plans: plans.filter((plan) => plan.chain_id === chain.chain_id) }));
  return groups.filter(({ plans }) => plans.length > 0);
}

export const price = (plan) => `${group(plan.token_amount)} ${plan.token_symbol}`;

export function planTable(chain, plans) {
  const rows = plans.map((plan) => [
    [
      plan.label || plan.id,
      plan.offer && [" ", h("span", { class: "tag" }, plan.offer)],
      plan.description && h("span", { class: "under" }, plan.description),
    ],
    h("span", { class: "plan-price" }, price(plan)),
    amount(plan.credits),
    plan.bonus_credits === "0" ? "" : amount(plan.bonus_credits, { sign: true }),
    plan.discount_percent ? h("span", { class: "tag tag-accent" }, `${plan.discount_percent}% off`) : "",
  ]);
  const columns = [
    { name: "Plan", head: true },
    { name: "Price", number: true },
    { name: "Credits", number: true },
    { name: "Bonus", number: true },
    { name: "Discount", number: true },
  ];
  return table(`Plans on ${chain.name}`, columns, rows);
}

/** Fills `place` with the plans on sale. */
export async function showPlans(place) {
  try {
    const groups = byChain(await callApi("/credits/plans"));
    if (groups.length === 0) {
      place.replaceChildren(h("p", { class: "empty" }, "No plans are on sale at the moment."));
      return;
    }
    const sections = groups.map(({ chain, plans }) => {
      const confirmations = chain.confirmations === "1" ? "1 confirmation" : `${chain.confirmations} confirmations`;
      const facts = `chain ${chain.chain_id}, credited after ${confirmations}`;
      const head = h("div", { class: "chain-head" }, h("h3", {}, chain.name), h("p", { class: "soft" }, facts));
      return h("section", { class: "chain", "aria-label": `Plans on ${chain.name}` }, head, planTable(chain, plans));
    });
    place.replaceChildren(...sections);
  } catch (error) {
    const again = h("button", { class: "button button-quiet button-small", type: "button" }, "Try again");
    again.addEventListener("click", () => showPlans(place));
    const words = h("p", {}, `Could not load the plans. ${sentence(error)}`);
    place.replaceChildren(h("div", { class: "notice notice-bad" }, words, h("div", { class: "actions" }, again)));
  }
}
