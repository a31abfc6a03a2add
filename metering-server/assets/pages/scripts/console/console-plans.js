// The plans, on sale or not.

import { act, admin } from "/assets/console-api.js";
import { chainName, chains } from "/assets/console-chains.js";
import { ask } from "/assets/console-dialog.js";
import { filtered } from "/assets/console-filter.js";
import { askForPlan } from "/assets/console-plan-form.js";
import { reload } from "/assets/console-router.js";
import { parts } from "/assets/console-rows.js";
import { isManager } from "/assets/console-session.js";
import { group } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { table } from "/assets/table.js";

const CSV = ["chain_id", "id", "label", "token_amount", "token_symbol", "token_contract", "credits", "bonus_credits", "active", "sort_order"];

/** The view. */
export async function plans() {
  const [{ plans: all }, known] = await Promise.all([admin("/plans"), chains()]);
  const create = isManager() && h("button", { class: "button", type: "button", id: "new-plan", on: { click: () => askForPlan(null, known) } }, "New plan");
  const columns = [{ name: "Plan", head: true }, { name: "Price", number: true }, { name: "Credits", number: true }, { name: "Order", number: true }, { name: "State" }, isManager() && { name: "Actions" }];
  const row = (plan) => [name(plan), price(plan, known), credits(plan), plan.sort_order, state(plan), isManager() && actions(plan, known)].filter((cell) => cell !== false);
  const list = (values) =>
    parts({
      load: async () => ({ items: all.filter((plan) => isWanted(plan, values)), next: null }),
      empty: all.length > 0 ? "No plan matches." : "There are no plans yet.",
      draw: (items) => table("Plans", columns.filter(Boolean), items.map(row)),
      csv: { name: "plans", columns: CSV, cells: (plan) => CSV.map((column) => plan[column]) },
    });
  const sold = [...new Set(all.map(({ chain_id: chain }) => chain))].map((chain) => [chain, chainName(known, chain)]);
  const fields = [
    { name: "search", label: "Name or id" },
    { name: "chain", label: "Chain", options: [["", "All"], ...sold] },
    { name: "state", label: "State", options: [["", "All"], ["on", "On sale"], ["off", "Off sale"]] },
  ];
  return { title: "Plans", lead: "What customers can buy. A change applies to quotes that are made from now on.", actions: [create], body: await filtered({ label: "Plans", fields, path: "/plans", list }) };
}

const isWanted = (plan, { search, chain, state }) =>
  [plan.label, plan.id].some((text) => text.toLowerCase().includes(search.toLowerCase())) && (!chain || plan.chain_id === chain) && (!state || plan.active === (state === "on"));

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
