// The dialog for the balance below which the account's owner is told, by webhooks and by email.

import { callApi } from "/assets/api.js";
import { formDialog } from "/assets/dialog.js";
import { h } from "/assets/dom.js";
import { checks, field, optional } from "/assets/field.js";
import { isMail } from "/assets/webhookhealth.js";

/** Whether one of the account's webhooks is told about a low balance. Mail is asked for separately. */
const isTold = (webhooks) => webhooks.some((webhook) => webhook.state === "active" && !isMail(webhook) && (webhook.events.length === 0 || webhook.events.includes("balance.low")));

/** Asks below which balance its owner is told, and whether by email. */
export function askAlert({ alert_below: below, email: address, email_verification: verification }, { email: isMailed }, webhooks, { key, reload }) {
  // A new alert is mailed unless the user decides otherwise.
  const email = isMailed !== undefined && field({ name: "email", label: `Send it to ${address}`, box: true, value: isMailed || (below === null && !webhooks.some(isMail)) });
  const toVerify = verification && verification.status !== "verified" ? " To be told by email, verify the address of the account." : "";
  const nobody = h("p", { class: "notice notice-warn", id: "nobody-told", role: "status" }, h("strong", {}, "Nobody will be told. "), "No webhook of the account gets balance.low", email ? ", and email is off." : ".", toVerify);
  const update = () => {
    nobody.hidden = isTold(webhooks) || Boolean(email && email.value());
  };
  if (email) email.input.addEventListener("change", update);
  update();
  const amount = field({ name: "below", label: "Alert below (credits)", value: below ?? "", inputmode: "decimal", hint: "Empty for no alert.", check: optional(checks.credits) });
  const fields = [amount, email].filter(Boolean);
  formDialog({
    title: "Low balance",
    about: [h("p", { class: "soft" }, "You get one alert when the balance falls below this amount, and one when it is used up. Adding credits resets both. Webhooks get balance.low and balance.exhausted.")],
    fields,
    layout: [...fields.map(({ element }) => element), nobody],
    confirm: "Save",
    explain: (one, text) => `${one.label} ${text}.`,
    send: ({ below: text, email: wanted }) => callApi("/credits/alert", { method: "PUT", key, body: { below: text || null, ...(wanted !== undefined && { email: wanted }) } }),
    done: async () => {
      await reload();
      document.getElementById("change-alert")?.focus();
    },
  });
}
