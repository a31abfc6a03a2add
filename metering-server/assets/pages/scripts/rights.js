// What the role of a signed-in member allows. The account's data contains it; the service decides each request. Nothing
// here limits a key: its scopes do.

import { h } from "/assets/dom.js";

const HOLDERS = { develop: "owners and developers", pay: "owners and billing members", own: "owners" };
/** The right that each scope needs. */
const OF_SCOPE = { read: "read", call: "develop", manage: "develop", topup: "pay" };

/** The member's `role`, and the rights that it has; null for a key. */
let member = null;

/** Reads the member from the balance document. */
export function learnRights(balance) {
  member = balance.member ?? null;
}

export const may = (right) => member === null || member.may.includes(right);

/** Whether the member may give a key this scope, or change a key that has it. */
export const mayGive = (scope) => may(OF_SCOPE[scope] ?? "own");

/** Why the member may not do something. */
export const whyNot = (right) => `Your role in this account is ${member.role}. Only ${HOLDERS[right]} can do this.`;

/** The buttons, or the reason why the member does not get them. */
export const allowed = (right, ...buttons) => (may(right) ? buttons : [h("span", { class: "soft hint", "data-withheld": right }, whyNot(right))]);
