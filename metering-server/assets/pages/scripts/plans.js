// The plans on sale as cards: the first page lists them, and the account's top-up has them to choose from.

import { callApi, sentence } from "/assets/api.js";
import { cardFace } from "/assets/checkout.js";
import { amount, group, plural } from "/assets/decimal.js";
import { breakable, h } from "/assets/dom.js";

/** The chains with their plans, in the service's order. */
export function byChain({ plans, chains }) {
  const groups = chains.map((chain) => ({ chain, plans: plans.filter((plan) => plan.chain_id === chain.chain_id) }));
  return groups.filter(({ plans }) => plans.length > 0);
}

export const price = (plan) => `${group(plan.token_amount)} ${plan.token_symbol}`;
/** The name of a plan in URLs and forms. */
export const planKey = (plan) => `${plan.chain_id}/${plan.id}`;

/**
 * The contents of a card, under a heading with the chain's name. Elements that are allowed in a label, so that the
 * whole card can be one.
 */
function face(plan) {
  const bonus = plan.bonus_credits !== "0" && h("span", { class: "offer-bonus" }, "+ ", amount(plan.bonus_credits), " bonus");
  const buys = plan.buys ?? [];
  return [
    h(
      "span",
      { class: "offer-head" },
      h("strong", { class: "offer-name" }, plan.label || plan.id),
      plan.discount_percent && h("span", { class: "tag tag-accent" }, `${plan.discount_percent}% off`),
      plan.offer && h("span", { class: "tag" }, plan.offer),
    ),
    h("span", { class: "offer-price" }, h("span", { class: "price" }, price(plan))),
    h("span", { class: "offer-credits" }, amount(plan.credits), ` ${plural(plan.credits, "credit")}`, bonus && " ", bonus),
    buys.length > 0 && h("span", { class: "offer-calls" }, ...breakable(`Buys ${buys.join(" or ")}`)),
    plan.description && h("span", { class: "offer-words" }, plan.description),
  ];
}

/** Cards to choose one plan from, as radio buttons of a form. */
export const choices = ({ chain, plans }) =>
  h(
    "fieldset",
    { class: "offers-chain" },
    h("legend", {}, `On ${chain.name}`),
    h("div", { class: "offers" }, ...plans.map((plan) => h("label", { class: "offer choice" }, h("input", { type: "radio", name: "plan", value: planKey(plan) }), ...face(plan)))),
  );

/** Cards to read, each with a link to buy the plan. */
function offers({ chain, plans }) {
  const confirmations = `${chain.confirmations} ${plural(chain.confirmations, "confirmation")}`;
  const head = h("div", { class: "chain-head" }, h("h3", { title: `Chain ${chain.chain_id}` }, chain.name), h("p", { class: "soft" }, `Credited after ${confirmations}`));
  const card = (plan) => {
    const href = `/metering/account?plan=${encodeURIComponent(planKey(plan))}#top-up`;
    const buy = h("a", { class: "button button-quiet", href, "aria-label": `Buy ${plan.label || plan.id} on ${chain.name}` }, "Buy");
    return h("li", { class: "offer" }, ...face(plan), buy);
  };
  return h("section", { class: "chain", "aria-label": `Plans on ${chain.name}` }, head, h("ul", { class: "offers" }, ...plans.map(card)));
}

/** Cards of the plans that are paid by card, each with a link to the form. */
function byCard(plans) {
  const card = (plan) => h("li", { class: "offer" }, ...cardFace(plan), h("a", { class: "button button-quiet", href: "/metering/account#top-up", "aria-label": `Buy ${plan.label} by card` }, "Buy"));
  return h("section", { class: "chain", "aria-label": "Plans by card" }, h("div", { class: "chain-head" }, h("h3", {}, "By card")), h("ul", { class: "offers" }, ...plans.map(card)));
}

/** Fills `place` with the plans on sale. */
export async function showPlans(place) {
  try {
    const plans = await callApi("/credits/plans");
    const parts = [...(plans.cards ? [byCard(plans.cards)] : []), ...byChain(plans).map(offers)];
    if (parts.length === 0) place.replaceChildren(h("p", { class: "empty" }, "No plans are on sale at the moment."));
    else place.replaceChildren(...parts);
  } catch (error) {
    const again = h("button", { class: "button button-quiet button-small", type: "button" }, "Try again");
    again.addEventListener("click", () => showPlans(place));
    const words = h("p", {}, `Could not load the plans. ${sentence(error)}`);
    place.replaceChildren(h("div", { class: "notice notice-bad" }, words, h("div", { class: "actions" }, again)));
  }
}
