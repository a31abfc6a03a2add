// The balance below which webhooks get the event balance.low.

import { callApi } from "/assets/api.js";
import { plural } from "/assets/decimal.js";
import { formDialog } from "/assets/dialog.js";
import { h } from "/assets/dom.js";
import { checks, field, optional } from "/assets/field.js";
import { figure } from "/assets/figure.js";

/** The line of the balance that says when it is low, with a button that changes it. */
export function alertLine({ alert_below: below }, { key, reload }) {
  const words = below === null ? ["No alert when it runs low."] : ["Alert below ", figure(below), ` ${plural(below, "credit")}.`];
  const change = h("button", { class: "link-button", type: "button", id: "change-alert", on: { click: () => ask(below, { key, reload }) } }, below === null ? "Set an alert" : "Change");
  return h("p", { class: "soft", id: "balance-alert" }, ...words, " ", change);
}

function ask(below, { key, reload }) {
  formDialog({
    title: "Low balance",
    about: [h("p", { class: "soft" }, "Your webhooks get balance.low once when the balance falls below this, and balance.exhausted when nothing is left. Both are sent again only after credits were added.")],
    fields: [field({ name: "below", label: "Alert below (credits)", value: below ?? "", inputmode: "decimal", hint: "Empty for no alert.", check: optional(checks.credits) })],
    confirm: "Save",
    explain: (one, text) => `${one.label} ${text}.`,
    send: ({ below: text }) => callApi("/credits/alert", { method: "PUT", key, body: { below: text || null } }),
    done: async () => {
      await reload();
      document.getElementById("change-alert")?.focus();
    },
  });
}
