// Approves a signup that was started elsewhere, by the code shown there.

import { callApi, inSeconds, sentence } from "/assets/api.js";
import { mountChallenge } from "/assets/challenge.js";
import { busy, byId, complain, onSubmit, say, showStep } from "/assets/dom.js";

const code = byId("code");
let pending = null;
let challenge = null;
let clock = null;

/** Formats a code as it is issued: capitals, with a hyphen in the middle. */
function tidy(text) {
  const letters = text.toUpperCase().replace(/[^A-Z0-9]/g, "");
  return letters.length === 8 ? `${letters.slice(0, 4)}-${letters.slice(4)}` : letters;
}

async function lookUp() {
  complain(code, "");
  const wanted = tidy(code.value);
  if (wanted.length !== 9) {
    complain(code, "A code has eight letters, such as BCDF-GHJK.");
    code.focus();
    return;
  }
  code.value = wanted;
  await busy(byId("code-button"), async () => {
    try {
      pending = await callApi(`/signup/pending?code=${encodeURIComponent(wanted)}`);
    } catch (error) {
      const unknown = error.code === "invalid_code" || error.code === "not_found";
      complain(code, unknown ? "This code is wrong, has expired, or was already used. Check it, or start again in the program that showed it." : sentence(error));
      code.focus();
      return;
    }
    present(wanted);
  });
}

function present(wanted) {
  byId("pending-code").textContent = wanted;
  byId("pending-agent").textContent = pending.agent_name;
  byId("pending-email").textContent = pending.email;
  const end = Date.now() + Number(pending.expires_in) * 1_000;
  const tick = () => {
    const left = Math.ceil((end - Date.now()) / 1_000);
    byId("pending-expiry").textContent = left > 0 ? inSeconds(left) : "expired";
    if (left <= 0) clearInterval(clock);
  };
  clearInterval(clock);
  clock = setInterval(tick, 1_000);
  tick();
  challenge ??= mountChallenge(byId("challenge"));
  byId("terms").checked = false;
  complain(byId("terms"), "");
  say(byId("approve-error"), "");
  showStep("approve-step");
  // Focus the text instead of the button, so that people read what they are about to approve.
  byId("approve-step").focus();
}

async function approve() {
  const terms = byId("terms");
  complain(terms, terms.checked ? "" : "Please accept the terms.");
  say(byId("approve-error"), "");
  if (!terms.checked) {
    terms.focus();
    return;
  }
  await busy(byId("approve-button"), async () => {
    const status = byId("approve-status");
    try {
      status.textContent = "Checking that you're human …";
      const token = await challenge.token();
      status.textContent = "Approving …";
      const body = { user_code: byId("pending-code").textContent, tos_accepted: true, captcha_token: token };
      await callApi("/verify", { method: "POST", body });
      clearInterval(clock);
      byId("approved-agent").textContent = pending.agent_name;
      if (byId("approved-email")) byId("approved-email").textContent = pending.email;
      showStep("approved-step", "Approved");
      byId("approved-step").focus();
    } catch (error) {
      challenge.renew();
      if (error.code === "invalid_code") {
        showStep("code-step");
        complain(code, "This code has expired or was already used. Start again in the program that showed it.");
        code.focus();
      } else {
        say(byId("approve-error"), sentence(error));
      }
    } finally {
      status.textContent = "";
    }
  });
}

onSubmit(byId("code-form"), lookUp);
onSubmit(byId("approve-form"), approve);
byId("another-code").addEventListener("click", () => {
  clearInterval(clock);
  code.value = "";
  complain(code, "");
  showStep("code-step");
  code.focus();
});
code.addEventListener("input", () => complain(code, ""));
byId("terms").addEventListener("change", () => complain(byId("terms"), ""));

const given = new URLSearchParams(location.search).get("code");
if (given) {
  code.value = tidy(given);
  lookUp();
}
