// The dialogs that turn automatic top-ups on and off, and remove the saved card.

import { callApi } from "/assets/api.js";
import { group } from "/assets/decimal.js";
import { formDialog } from "/assets/dialog.js";
import { h } from "/assets/dom.js";
import { checks, field } from "/assets/field.js";

const checkLimit = (text) => (/^\d+(\.\d+)?$/.test(text) && /[1-9]/.test(text) ? "" : "Enter an amount above zero.");

/** Asks for the plan to charge the card for, the threshold and the monthly limit. `done` gets the new settings. */
export function askAutoTopUp(plans, { card, rule }, key, done) {
  const options = plans.map((plan) => [plan.id, `${plan.label}: ${group(plan.credits)} credits for ${group(plan.amount)} ${plan.currency}`]);
  formDialog({
    title: "Automatic top-ups",
    about: [h("p", { class: "soft" }, `When your balance falls below the threshold, your ${card.brand} card ending in ${card.last4} is charged for the plan, without asking you again. You can turn this off at any time.`)],
    fields: [
      field({ name: "plan_id", label: "Plan", options, value: rule?.plan_id ?? plans[0].id }),
      field({ name: "threshold", label: "Top up below (credits)", value: rule?.threshold ?? "", inputmode: "decimal", check: checks.credits }),
      field({ name: "monthly_limit", label: "At most per calendar month, in the plan's currency", value: rule?.monthly_limit ?? "", inputmode: "decimal", check: checkLimit }),
    ],
    confirm: "Turn on",
    explain: (one, text) => `${one.label}: ${text}.`,
    send: ({ plan_id: plan, threshold, monthly_limit: limit }) => callApi("/credits/auto-top-up", { method: "PUT", key, body: { plan_id: plan, threshold, monthly_limit: limit } }),
    done,
  });
}

/** Asks whether to turn them off. */
export function askToEnd(key, done) {
  formDialog({
    title: "Turn automatic top-ups off?",
    about: [h("p", {}, "Your card stays saved. A charge in progress is not undone.")],
    confirm: "Turn off",
    send: () => callApi("/credits/auto-top-up", { method: "DELETE", key }),
    done,
  });
}

/** Asks whether to remove the card. */
export function askToRemove(card, key, done) {
  formDialog({
    title: "Remove the saved card?",
    about: [h("p", {}, `Your ${card.brand} card ending in ${card.last4} is removed here and at the card processor. Automatic top-ups are turned off.`)],
    confirm: "Remove card",
    danger: true,
    send: () => callApi("/credits/card", { method: "DELETE", key }),
    done,
  });
}
