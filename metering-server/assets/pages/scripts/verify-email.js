// Verifies an email address with the link that was sent there.

import { callApi, sentence } from "/assets/api.js";
import { busy, byId, h, onSubmit, say, showStep } from "/assets/dom.js";
import { amount, toUnits } from "/assets/decimal.js";
import { forgetLink, linkToken } from "/assets/link.js";

function showOver(title, words) {
  byId("over-words").textContent = words;
  showStep("over-step", title);
  byId("link-title").focus();
}

async function verify() {
  const token = linkToken();
  say(byId("link-error"), "");
  await busy(byId("link-button"), async () => {
    try {
      showDone(await callApi("/signup/email/verify", { method: "POST", body: { token } }));
      forgetLink();
    } catch (error) {
      if (error.code === "link_expired") {
        showOver("This link no longer works", "It was already used, was replaced by a newer one, or is older than a day. You can request a new link on your account page.");
      } else if (error.code === "email_already_registered") {
        showOver("This address is taken", "Another account has verified this email address in the meantime, so this account cannot. Its key still works, but it gets no free credits. If the other account is yours too, use that one.");
      } else {
        say(byId("link-error"), sentence(error));
      }
    }
  });
}

function showDone({ email, agent_name: name, credits_granted: granted }) {
  const credits = toUnits(granted) > 0n ? [" ", h("strong", {}, amount(granted), " free credits"), " were added to ", h("strong", {}, name), "."] : [];
  byId("done-words").replaceChildren(h("strong", {}, email), " is verified.", ...credits);
  showStep("done-step", "Verified");
  byId("link-title").focus();
}

function start() {
  if (linkToken()) {
    showStep("ask-step", "Verify your email address");
    return;
  }
  byId("over-words").textContent = "Open the link in the mail that we sent you. You can ask for a new one on your account page.";
  showStep("over-step", "Verify your email address");
}

onSubmit(byId("link-form"), verify);
// A link that is opened in a tab with this page changes only the fragment.
addEventListener("hashchange", start);
start();
