// Says which plan a visitor is buying, while they sign up and sign in.

import { callApi } from "/assets/api.js";
import { h } from "/assets/dom.js";
import { planKey, price } from "/assets/plans.js";
import { forgetPlan, rememberedPlan } from "/assets/session.js";

/** Says in `place` which plan is being bought, and then `next`. Without a plan, `place` is hidden. */
export async function showBuying(place, ...next) {
  const chosen = rememberedPlan();
  place.hidden = true;
  if (!chosen) return;
  // Its name is optional: without it, the payment still opens.
  const { plans, chains } = await callApi("/credits/plans").catch(() => ({}));
  if (rememberedPlan() !== chosen) return;
  const plan = plans?.find((candidate) => planKey(candidate) === chosen);
  if (plans && !plan) {
    forgetPlan();
    return;
  }
  const chain = chains?.find(({ chain_id: id }) => id === plan.chain_id);
  const words = plan ? [h("strong", {}, plan.label || plan.id), ` for ${price(plan)} on ${chain?.name ?? `chain ${plan.chain_id}`}`] : ["the plan that you chose"];
  const cancel = () => {
    forgetPlan();
    place.hidden = true;
    // The focus would be lost with the button.
    place.parentElement.querySelector("form input:not([tabindex])").focus();
  };
  const button = h("button", { class: "link-button", type: "button", "data-action": "cancel-plan", on: { click: cancel } }, "Cancel");
  place.replaceChildren(h("p", {}, "You are buying ", ...words, ". ", ...next, " ", button));
  place.hidden = false;
}
