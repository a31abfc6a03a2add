// Signup: the same flow as in a terminal, started and approved on one page.

import { ApiError, callApi, sentence } from "/assets/api.js";
import { mountChallenge } from "/assets/challenge.js";
import { amount, group, toUnits } from "/assets/decimal.js";
import { busy, byId, complain, h, onSubmit, say, wait } from "/assets/dom.js";
import { firstCall, secret } from "/assets/secret.js";
import { rememberKey, rememberedPlan } from "/assets/session.js";

const AGENT_NAME = /^[A-Za-z0-9_-]{1,64}$/;
/** How many status polls to send before giving up. */
const MAX_POLLS = 30;
const KEY_LOST = "Your account was opened, but its key was lost in transit and cannot be shown again. Ask the operator to replace it; you cannot sign up with this email address again.";

/** Adds the behaviour to the form. */
export async function startSignup() {
  const [form, email, agentName, terms] = [byId("signup"), byId("email"), byId("agent-name"), byId("terms")];
  let session = null;
  for (const input of [email, agentName, terms]) {
    input.addEventListener("input", () => {
      complain(input, "");
      if (input !== terms) session = null;
    });
  }
  const challenge = mountChallenge(byId("challenge"));
  onSubmit(form, () => {
    say(byId("signup-error"), "");
    if (!looksRight(email, agentName, terms)) return;
    busy(byId("signup-button"), async () => {
      const status = byId("signup-status");
      try {
        status.textContent = "Signing up …";
        session ??= await begin(email.value.trim(), agentName.value.trim());
        // Editing the form resets `session`, but not the request in progress.
        const current = session;
        status.textContent = "Checking that you're human …";
        const token = current.approved ? undefined : await challenge.token();
        status.textContent = "Opening your account …";
        await approve(current, token, challenge);
        const account = await collect(current);
        session = null;
        show(account, email.value.trim());
      } catch (error) {
        if (["invalid_code", "expired", "not_found", "key_lost"].includes(error.code)) session = null;
        report(error, email, agentName);
      } finally {
        status.textContent = "";
      }
    });
  });
}

function looksRight(email, agentName, terms) {
  const wrong = [
    [email, email.value.trim() === "" ? "Enter your email address." : email.validity.valid ? "" : "This is not a valid email address."],
    [agentName, AGENT_NAME.test(agentName.value.trim()) ? "" : "Use 1 to 64 letters, digits, _ or -."],
    [terms, terms.checked ? "" : "Please accept the terms."],
  ];
  for (const [input, text] of wrong) complain(input, text);
  wrong.find(([, text]) => text)?.[0].focus();
  return wrong.every(([, text]) => !text);
}

const begin = (email, agent_name) => callApi("/signup/initiate", { method: "POST", body: { email, agent_name } });

async function approve(session, token, challenge) {
  if (session.approved) return;
  const body = { user_code: session.user_code, tos_accepted: true, captcha_token: token };
  try {
    await callApi("/verify", { method: "POST", body });
    session.approved = true;
  } catch (error) {
    // A solution can be used only once, whatever the result.
    challenge.renew();
    // The earlier attempt got no response, but succeeded.
    session.approved = error.code === "invalid_code" && session.unanswered === true;
    if (session.approved) return;
    session.unanswered ||= hasNoResponse(error);
    throw error;
  }
}

/** Whether the service may have processed the request even though no response arrived. */
const hasNoResponse = (error) => ["network", "timeout", "unreadable"].includes(error.code) || error.status >= 500;

/** Polls until the key is available. */
async function collect(session) {
  const interval = Number(session.interval) * 1_000;
  const path = `/signup/status?session_token=${encodeURIComponent(session.session_token)}`;
  for (let poll = 0; poll < MAX_POLLS; poll += 1) {
    try {
      const response = await callApi(path);
      if (response.status === "approved") return response;
      if (response.status === "expired") throw new ApiError("expired", "That took too long. Sign up again.");
      await wait(interval);
    } catch (error) {
      if (error.code === "not_found" && session.keyUnanswered) throw new ApiError("key_lost", KEY_LOST);
      session.keyUnanswered ||= hasNoResponse(error);
      if (error.retryAfter === undefined && !hasNoResponse(error)) throw error;
      await wait(Math.max(interval, (error.retryAfter ?? 0) * 1_000));
    }
  }
  throw new ApiError("late", "Your key has not arrived yet. Press Sign up to try again.");
}

function report(error, email, agentName) {
  const { email: wrongEmail, agent_name: wrongName } = error.fields ?? {};
  if (wrongEmail) complain(email, `The email address ${wrongEmail}.`);
  if (wrongName) complain(agentName, `The agent name ${wrongName}.`);
  if (error.code === "email_already_registered") {
    complain(email, "An account with this email address already exists. Sign in with its key, or use another address.");
    email.focus();
    return;
  }
  if (wrongEmail || wrongName) (wrongEmail ? email : agentName).focus();
  else say(byId("signup-error"), sentence(error));
}

/** The next step when the address has to be verified. */
function nextStep(verification, email) {
  if (verification?.status !== "pending") return [];
  const free = toUnits(verification.free_credits) > 0n ? [" to get your ", h("strong", {}, amount(verification.free_credits), " free credits")] : [];
  return [h("div", { class: "notice notice-warn", id: "verify-next" }, h("p", {}, h("strong", {}, "One more step: "), "open the link that we sent to ", h("strong", {}, email), ...free, "."))];
}

/** Shows the key, only once: this page does not store it. */
function show({ api_key: key, credit_balance: balance, rate_limits: limits, org_id: id, email_verification: verification }, email) {
  const title = h("h2", { tabindex: "-1" }, "Your key");
  const isBuying = Boolean(rememberedPlan());
  const href = isBuying ? "/metering/account#top-up" : "/metering/account";
  const open = h("a", { class: "button", href, on: { click: () => rememberKey(key) } }, isBuying ? "Continue to the payment" : "Open your account");
  const perMinute = limits.requests_per_minute === "0" ? "no limit" : `${group(limits.requests_per_minute)} a minute`;
  byId("signup-done").replaceChildren(
    title,
    h("p", {}, h("strong", {}, "Save it now: it is shown only once. "), "We store a hash of it and cannot show it again."),
    secret(key),
    ...nextStep(verification, email),
    h(
      "dl",
      { class: "facts" },
      h("div", {}, h("dt", {}, "Credits"), h("dd", {}, amount(balance))),
      h("div", {}, h("dt", {}, "Requests"), h("dd", {}, perMinute)),
      h("div", {}, h("dt", {}, "Account"), h("dd", { class: "mono" }, id)),
    ),
    h("h3", {}, "Your first call"),
    firstCall(key),
    h("div", { class: "actions" }, open),
  );
  byId("signup").reset();
  byId("buying").hidden = true;
  byId("signup-form-step").hidden = true;
  byId("signup-done").hidden = false;
  byId("signup-done").parentElement.setAttribute("aria-labelledby", (title.id = "key-title"));
  title.focus();
}
