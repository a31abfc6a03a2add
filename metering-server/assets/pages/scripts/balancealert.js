// The line below the balance about its low balance alert. The dialog that changes it is loaded on demand.

import { callApi, sentence } from "/assets/api.js";
import { plural } from "/assets/decimal.js";
import { arrived, busy, h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { allowed } from "/assets/rights.js";

/** The line below the balance with its alert, and a button that changes it. */
export function alertLine(balance, { key, reload }) {
  const { alert_below: below } = balance;
  const words = below === null ? ["No alert when it runs low."] : ["Alert below ", figure(below), ` ${plural(below, "credit")}.`];
  const status = h("span", { class: "bad", role: "alert" });
  const change = h("button", { class: "link-button", type: "button", id: "change-alert" }, below === null ? "Set an alert" : "Change");
  change.addEventListener("click", () =>
    busy(change, async () => {
      status.textContent = "";
      try {
        const [alert, { data: webhooks }, { askAlert }] = await Promise.all([callApi("/credits/alert", { key }), callApi("/webhooks", { key }), arrived(import("/assets/alertdialog.js"))]);
        if (change.isConnected) askAlert(balance, alert, webhooks, { key, reload });
      } catch (error) {
        status.textContent = ` ${sentence(error)}`;
      }
    }),
  );
  return h("p", { class: "soft", id: "balance-alert" }, ...words, " ", ...allowed("pay", change), status);
}
