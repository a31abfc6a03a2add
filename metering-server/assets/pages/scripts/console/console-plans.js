// The plans, on sale or not.

import { act, admin } from "/assets/console-api.js";
import { chainName, chains } from "/assets/console-chains.js";
import { ask } from "/assets/console-dialog.js";
import { askForPlan } from "/assets/console-plan-form.js";
import { reload } from "/assets/console-router.js";
import { isManager } from "/assets/console-session.js";
import { group } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { table } from "/assets/table.js";

/** The view. */
export async function plans() {
  const [{ plans: list }, known] = await Promise.all([admin("/plans"), chains()]);
  const create = isManager() && h("button", { class: "button", type: "button", id: "new-plan", on: { click: () => askForPlan(null, known) } }, "New plan");
  const columns = [{ name: "Plan", head: true }, { name: "Price", number: true }, { name: "Credits", number: true }, { name: "Order", number: true }, { name: "State" }, isManager() && { name: "Actions" }];
  const rows = list.map((plan) => [name(plan), price(plan, known), credits(plan), plan.sort_order, state(plan), isManager() && actions(plan, known)].filter((cell) => cell !== false));
  const content = list.length > 0 ? table("Plans", columns.filter(Boolean), rows) : h("p", { class: "soft empty" }, "There are no plans yet.");
  return { title: "Plans", lead: "What customers can buy. A change applies to quotes that are made from now on.", actions: [create], body: [content] };
}

const name = (plan) => [plan.label, h("span", { class: "under mono" }, plan.id), plan.offer && h("span", { class: "tag" }, plan.offer)].filter(Boolean);
const price = (plan, known) => [`${group(plan.token_amount)} ${plan.token_symbol}`, h("span", { class: "under" }, `on ${chainName(known, plan.chain_id)}`)];
const credits = (plan) => [figure(plan.credits), plan.bonus_credits !== "0" && h("span", { class: "under" }, "and ", figure(plan.bonus_credits), " bonus")].filter(Boolean);
const state = (plan) => h("span", { class: plan.active ? "tag tag-good" : "tag" }, plan.active ? "on sale" : "off sale");

function actions(plan, known) {
  const id = (action) => `${action}-${plan.chain_id}-${plan.id}`;
  const hidden = () => h("span", { class: "quietly-there" }, ` ${plan.label}`);
  const button = (action, label, work) => h("button", { class: "button button-quiet button-small", type: "button", id: id(action), on: { click: work } }, label, hidden());
  const change = (action, words) => () => confirm(plan, action, words);
  const sale = plan.active
    ? button("deactivate", "Take off sale", change("deactivate", ["Take off sale", "Customers no longer see it. Quotes that were made can still be paid.", "Took the plan off sale."]))
    : button("activate", "Put on sale", change("activate", ["Put on sale", "Customers can buy it at once.", "Put the plan on sale."]));
  return h(
    "div",
    { class: "row-actions" },
    button("edit", "Edit", () => askForPlan(plan, known)),
    sale,
    button("remove", "Remove", change("remove", ["Remove", "Payments that were made for it stay in the ledger.", "Removed the plan."])),
  );
}

function confirm(plan, action, [label, about, done]) {
  ask({
    title: `${label}: ${plan.label}`,
    about: [h("p", { class: "soft" }, about)],
    confirm: label,
    danger: action === "remove",
    send: ({ reason }) => act(`/plans/${plan.chain_id}/${encodeURIComponent(plan.id)}/${action}`, { reason }),
    done: () => reload(done),
  });
}
