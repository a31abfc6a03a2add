// The account page's parts about the email address: whether it is verified, and another link.

import { callApi, sentence } from "/assets/api.js";
import { amount, toUnits } from "/assets/decimal.js";
import { busy, h } from "/assets/dom.js";
import { allowed } from "/assets/rights.js";

/** Whether the account's address is not verified yet. */
export const isPending = ({ email_verification: verification }) => verification?.status === "pending";

/** The notice above an account whose address is not verified yet. */
export function pendingNotice(balance, key) {
  if (!isPending(balance)) return [];
  const { email, email_verification: { free_credits: free } } = balance;
  const gain = toUnits(free) > 0n ? [" Your ", h("strong", {}, amount(free), " free credits"), " are added then."] : [];
  return [
    h(
      "div",
      { class: "notice notice-warn", id: "email-pending", role: "status" },
      h("h2", {}, "Verify your email address"),
      h("p", {}, "Open the link that we sent to ", h("strong", {}, email), ".", ...gain),
      h("p", {}, "Is this not your address? Then don't buy credits for this account, because the owner of the address could replace your key. Sign up again with the right one."),
      sendAgain(key, "Send the link again"),
    ),
  ];
}

/** Offers verification to an account that was opened without it. */
export function showVerification(place, balance, key) {
  const status = balance.email_verification?.status;
  place.hidden = !status || isPending(balance);
  if (place.hidden) return;
  const words = status === "verified"
    ? [h("p", { class: "soft" }, h("strong", {}, balance.email), " is verified. You can sign in with a link by email, and if you lose your key, ", h("a", { href: "/metering/recover" }, "replace it by email"), ".")]
    : [h("p", { class: "soft" }, "Verify ", h("strong", {}, balance.email), " to be able to sign in with a link by email, and to replace a lost key."), sendAgain(key, "Send a link")];
  place.replaceChildren(h("h2", {}, "Recovery by email"), ...words);
}

function sendAgain(key, label) {
  const status = h("p", { class: "status", role: "status" });
  const button = h("button", { class: "button button-quiet", type: "button", "data-action": "send-link" }, label);
  button.addEventListener("click", () =>
    busy(button, async () => {
      status.textContent = "";
      try {
        const { status: sent } = await callApi("/signup/email/send", { method: "POST", key: key() });
        status.textContent = sent === "verified" ? "Your address is already verified." : "A new link is on its way. It replaces the earlier one.";
      } catch (error) {
        status.textContent = sentence(error);
      }
    }),
  );
  return h("div", { class: "actions" }, ...allowed("own", button), status);
}
