// Buys a plan by card: the service creates a checkout, and the browser opens the processor's page.

import { callApi, sentence } from "/assets/api.js";
import { amount, group, plural } from "/assets/decimal.js";
import { busy, h, onSubmit } from "/assets/dom.js";

const RETURNED = {
  paid: "Thank you. The credits are in your account as soon as the payment is confirmed, usually within a minute.",
  cancelled: "You left the checkout, and nothing was charged.",
};

const cardPrice = (plan) => `${group(plan.amount)} ${plan.currency}`;

/** The contents of a plan's card. */
export const cardFace = (plan) => [
  h("span", { class: "offer-head" }, h("strong", { class: "offer-name" }, plan.label)),
  h("span", { class: "offer-price" }, h("span", { class: "price" }, cardPrice(plan))),
  h("span", { class: "offer-credits" }, amount(plan.credits), ` ${plural(plan.credits, "credit")}`),
];

/** The form to choose a plan and go to its checkout. `key` returns the key of the account. */
export function cardForm(plans, key) {
  const card = (plan) => h("label", { class: "offer choice" }, h("input", { type: "radio", name: "card", value: plan.id }), ...cardFace(plan));
  const returned = RETURNED[new URLSearchParams(location.search).get("checkout")];
  const status = h("div", { class: "notice", role: "status", hidden: !returned }, returned ?? "");
  const button = h("button", { class: "button", type: "submit", "data-action": "checkout" });
  const label = () => {
    button.textContent = `Pay ${cardPrice(plans.find((plan) => plan.id === form.elements.card.value))} by card`;
  };
  const form = h(
    "form",
    { class: "plan-form", id: "card-form", method: "post", on: { change: () => label() } },
    h("h2", {}, "Pay by card"),
    status,
    h("fieldset", { class: "offers-chain" }, h("legend", {}, "Plan"), h("div", { class: "offers" }, ...plans.map(card))),
    h("label", { class: "check" }, h("input", { type: "checkbox", name: "save" }), "Save the card, so that I can turn on automatic top-ups"),
    h("div", { class: "plan-next" }, button),
  );
  form.querySelector("input").checked = true;
  label();
  onSubmit(form, () =>
    busy(button, async () => {
      try {
        const { url } = await callApi("/credits/checkout", { method: "POST", key: key(), body: { plan_id: form.elements.card.value, ...(form.elements.save.checked && { save_card: true }) } });
        location.assign(url);
      } catch (error) {
        status.textContent = sentence(error);
        status.className = "notice notice-bad";
        status.hidden = false;
      }
    }),
  );
  return form;
}
