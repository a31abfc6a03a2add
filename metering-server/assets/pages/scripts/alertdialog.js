// The dialog for the low balance alert: its threshold, and whether to notify by email.

import { callApi } from "/assets/api.js";
import { formDialog } from "/assets/dialog.js";
import { h } from "/assets/dom.js";
import { checks, field, optional } from "/assets/field.js";
import { isMail } from "/assets/webhookhealth.js";

/** Whether one of the account's webhooks gets the event balance.low. Mail is a separate choice. */
const isTold = (webhooks) => webhooks.some((webhook) => webhook.state === "active" && !isMail(webhook) && (webhook.events.length === 0 || webhook.events.includes("balance.low")));

/** Asks for the alert's threshold, and whether to send email. */
export function askAlert({ alert_below: below, email: address, email_verification: verification }, { email: isMailed }, webhooks, { key, reload }) {
  // Email is on by default for a new alert.
  const email = isMailed !== undefined && field({ name: "email", label: `Send it to ${address}`, box: true, value: isMailed || (below === null && !webhooks.some(isMail)) });
  const toVerify = verification && verification.status !== "verified" ? " To get alerts by email, verify the address of the account." : "";
  const nobody = h("p", { class: "notice notice-warn", id: "nobody-told", role: "status" }, h("strong", {}, "No one will be notified. "), "No webhook of the account gets balance.low", email ? ", and email is off." : ".", toVerify);
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
