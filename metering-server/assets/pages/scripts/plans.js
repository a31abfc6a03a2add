// The plans on sale as cards: the first page lists them, and the account's top-up has them to choose from.

import { callApi, sentence } from "/assets/api.js";
import { amount, fromUnits, group, plural, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { brief } from "/assets/price.js";

/** Decimal places with which prices per call are calculated: more than any token has. */
const PLACES = 36;
const CREDIT = 10n ** 10n;

/** The chains with their plans, in the service's order. `unit` is the value of a credit in calls. */
export function byChain({ plans, chains, epoch_unit: unit }) {
  const groups = chains.map((chain) => ({ chain, unit, plans: plans.filter((plan) => plan.chain_id === chain.chain_id) }));
  return groups.filter(({ plans }) => plans.length > 0);
}

export const price = (plan) => `${group(plan.token_amount)} ${plan.token_symbol}`;
/** What a plan is called in URLs and forms. */
export const planKey = (plan) => `${plan.chain_id}/${plan.id}`;

/** How many calls of weight 1 a plan buys, and what one of them costs: exact, then rounded to four digits. */
export function calls(plan, unit) {
  const credits = toUnits(plan.credits) + toUnits(plan.bonus_credits);
  const perCredit = BigInt(unit.epochs_per_credit);
  const each = credits === 0n ? "0" : fromUnits((toUnits(plan.token_amount, PLACES) * CREDIT) / (credits * perCredit), PLACES);
  return { count: String((credits * perCredit) / CREDIT), each: brief(each) };
}

/** What a card shows. Elements that are allowed in a label, so that the whole card can be one. */
function face(plan, { chain, unit }) {
  const bonus = plan.bonus_credits !== "0" && h("span", { class: "offer-bonus" }, "+ ", amount(plan.bonus_credits), " bonus");
  const { count, each } = calls(plan, unit);
  return [
    h(
      "span",
      { class: "offer-head" },
      h("strong", { class: "offer-name" }, plan.label || plan.id),
      plan.discount_percent && h("span", { class: "tag tag-accent" }, `${plan.discount_percent}% off`),
      plan.offer && h("span", { class: "tag" }, plan.offer),
    ),
    h("span", { class: "offer-price" }, h("span", { class: "price" }, price(plan)), h("span", { class: "offer-chain" }, ` on ${chain.name}`)),
    h("span", { class: "offer-credits" }, amount(plan.credits), ` ${plural(plan.credits, "credit")}`, bonus && " ", bonus),
    h("span", { class: "offer-calls" }, `${group(count)} ${plural(count, "call")} of weight 1`, h("br"), `${each} ${plan.token_symbol} per call`),
    plan.description && h("span", { class: "offer-words" }, plan.description),
  ];
}

/** Cards to choose one plan from, as radio buttons of a form. */
export const choices = ({ chain, unit, plans }) =>
  h(
    "fieldset",
    { class: "offers-chain" },
    h("legend", {}, `On ${chain.name}`),
    h("div", { class: "offers" }, ...plans.map((plan) => h("label", { class: "offer choice" }, h("input", { type: "radio", name: "plan", value: planKey(plan) }), ...face(plan, { chain, unit })))),
  );

/** Cards to read, each with a link to buy the plan. */
function offers({ chain, unit, plans }) {
  const confirmations = `${chain.confirmations} ${plural(chain.confirmations, "confirmation")}`;
  const head = h("div", { class: "chain-head" }, h("h3", {}, chain.name), h("p", { class: "soft" }, `chain ${chain.chain_id}, credited after ${confirmations}`));
  const card = (plan) => {
    const href = `/metering/account?plan=${encodeURIComponent(planKey(plan))}#top-up`;
    const buy = h("a", { class: "button button-quiet", href, "aria-label": `Buy ${plan.label || plan.id} on ${chain.name}` }, "Buy");
    return h("li", { class: "offer" }, ...face(plan, { chain, unit }), buy);
  };
  return h("section", { class: "chain", "aria-label": `Plans on ${chain.name}` }, head, h("ul", { class: "offers" }, ...plans.map(card)));
}

/** Fills `place` with the plans on sale. */
export async function showPlans(place) {
  try {
    const document = await callApi("/credits/plans");
    const groups = byChain(document);
    if (groups.length === 0) {
      place.replaceChildren(h("p", { class: "empty" }, "No plans are on sale at the moment."));
      return;
    }
    const unit = document.epoch_unit;
    const about = h("p", { class: "soft offers-unit" }, `A call of weight 1 costs ${unit.credits_per_epoch} credits; a route of weight 5 costs five times that. `, h("a", { href: "/docs" }, "Every route has its price"), ".");
    place.replaceChildren(...groups.map(offers), about);
  } catch (error) {
    const again = h("button", { class: "button button-quiet button-small", type: "button" }, "Try again");
    again.addEventListener("click", () => showPlans(place));
    const words = h("p", {}, `Could not load the plans. ${sentence(error)}`);
    place.replaceChildren(h("div", { class: "notice notice-bad" }, words, h("div", { class: "actions" }, again)));
  }
}
