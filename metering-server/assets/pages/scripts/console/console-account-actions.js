// What a manager can do to an account.

import { sentence } from "/assets/api.js";
import { act, admin, exact } from "/assets/console-api.js";
import { ask, issued } from "/assets/console-dialog.js";
import { addNote } from "/assets/console-notes.js";
import { checks } from "/assets/field.js";
import { reload } from "/assets/console-router.js";
import { isManager } from "/assets/console-session.js";
import { group, plural } from "/assets/decimal.js";
import { h } from "/assets/dom.js";

const NOTE = { name: "note", label: "Note", hint: "The account's owner reads it in the ledger.", maxlength: "500", check: checks.given };

/** The buttons. A viewer gets none, and a revoked account can only get corrections and notes, or be erased. */
export function accountActions(account) {
  if (!isManager()) return [];
  const path = (action) => `/accounts/${account.org_id}/${action}`;
  const button = (id, label, work, kind = "button-quiet") => h("button", { class: `button ${kind}`, type: "button", id, on: { click: () => work(account, path) } }, label);
  const adjustment = button("adjust", "Adjust", adjust);
  const erasure = button("erase", "Erase owner", erase, "button-quiet danger");
  const note = button("note", "Add note", addNote);
  if (account.status === "revoked") return [adjustment, note, erasure];
  return [
    button("grant", "Grant", grant, ""),
    adjustment,
    button("limits", "Limits", limits),
    button("rotate", "Rotate key", rotate),
    note,
    button("revoke", "Revoke", revoke, "button-quiet danger"),
    erasure,
  ];
}

const amount = (credits) => `${group(credits)} ${plural(credits, "credit")}`;

function grant({ agent_name: name }, path) {
  ask({
    title: `Grant credits to ${name}`,
    fields: [{ name: "credits", label: "Credits", inputmode: "decimal", check: checks.credits }, { ...NOTE, label: "Note (optional)", check: undefined }],
    confirm: "Grant",
    send: ({ credits, note, reason }) => act(path("grant"), { credits: exact(credits), note: note || undefined, reason }),
    done: (_, { credits }) => reload(`Granted ${amount(credits)}.`),
  });
}

function adjust({ agent_name: name }, path) {
  ask({
    title: `Adjust the balance of ${name}`,
    about: [h("p", { class: "soft" }, "Corrects a mistake. The balance may go below zero; calls are then refused.")],
    fields: [{ name: "credits", label: "Change in credits", hint: "Below zero to take credits away, such as -2.5.", check: checks.change }, NOTE],
    confirm: "Adjust",
    send: ({ credits, note, reason }) => act(path("adjust"), { credits: exact(credits), note, reason }),
    done: (_, { credits }) => reload(`Changed the balance by ${amount(credits)}.`),
  });
}

function limits({ agent_name: name, rate_limits: now, tokens_per_minute: tokens }, path) {
  ask({
    title: `Rate limits of ${name}`,
    fields: [
      { name: "requests_per_minute", label: "Requests a minute", hint: "0 means no limit.", value: now.requests_per_minute, inputmode: "numeric", check: checks.whole },
      { name: "requests_per_day", label: "Requests a day (UTC)", hint: "0 means no limit.", value: now.requests_per_day, inputmode: "numeric", check: checks.whole },
      { name: "tokens_per_minute", label: "Tokens a minute", hint: "0 means no limit.", value: tokens, inputmode: "numeric", check: checks.whole },
    ],
    confirm: "Set limits",
    send: ({ requests_per_minute, requests_per_day, tokens_per_minute, reason }) =>
      act(path("limits"), { requests_per_minute: exact(requests_per_minute), requests_per_day: exact(requests_per_day), tokens_per_minute: exact(tokens_per_minute), reason }),
    done: () => reload("Set the rate limits."),
  });
}

function rotate({ agent_name: name }, path) {
  ask({
    title: `Rotate the key of ${name}`,
    about: [h("p", { class: "soft" }, "The old key stops working at once. The new one is shown here, once.")],
    confirm: "Rotate key",
    danger: true,
    send: ({ reason }) => act(path("rotate-key"), { reason }),
    done: ({ api_key: key }) => issued({ title: "The new key", words: `Give this key to the owner of ${name}. It is shown once.`, text: key, done: () => reload("Replaced the key.") }),
  });
}

function revoke({ agent_name: name }, path) {
  ask({
    title: `Revoke ${name}`,
    about: [h("p", {}, "Its key stops working immediately. This cannot be undone. The ledger and usage stay.")],
    fields: [{ name: "confirmation", label: `Type ${name} to confirm`, autocapitalize: "none", check: (text) => (text === name ? "" : `Type ${name}, exactly.`) }],
    confirm: "Revoke account",
    danger: true,
    send: ({ reason }) => act(path("revoke"), { reason }),
    done: () => reload("Revoked the account."),
  });
}

function erase({ agent_name: name, org_id: org }, path) {
  const found = h("ul", { class: "soft", id: "erased" }, h("li", {}, "Counting …"));
  const line = ({ kind, records }) => h("li", {}, `${kind.replaceAll("_", " ")}: ${group(records)}`);
  const count = ({ erased }) => found.replaceChildren(...(erased.length > 0 ? erased.map(line) : [h("li", {}, "There is nothing to erase.")]));
  admin(path("erasure")).then(count, (error) => found.replaceChildren(h("li", {}, sentence(error))));
  ask({
    title: `Erase the owner of ${name}`,
    about: [
      h("p", {}, "What is stored of the owner is erased, and the account is revoked. This cannot be undone. Id, balance, ledger, usage and payments stay, and receipts keep who bought."),
      found,
    ],
    fields: [{ name: "confirmation", label: `Type ${org} to confirm`, autocapitalize: "none", check: (text) => (text === org ? "" : `Type ${org}, exactly.`) }],
    confirm: "Erase owner",
    danger: true,
    send: ({ reason }) => act(path("erase"), { reason }),
    done: () => reload("Erased the owner."),
  });
}
