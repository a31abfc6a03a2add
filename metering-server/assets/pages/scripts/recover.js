// Signs in by email or with a wallet, accepts an invitation, or replaces a lost key: asks for a link, and exchanges it for a
// session or for a new key.

import { callApi, sentence } from "/assets/api.js";
import { busy, byId, complain, h, onSubmit, say, showStep } from "/assets/dom.js";
import { forgetLink, linkToken, signInToken } from "/assets/link.js";
import { newKey } from "/assets/rotate.js";
import { secretText } from "/assets/rotation.js";
import { forgetRecovery, forgetRotation, rememberKey, rememberRecovery, rememberedRecovery } from "/assets/session.js";
import { accountsOfLink, signInByLink } from "/assets/signin.js";
import { accountChooser, accountName, ofChosenAccount, offerWallet } from "/assets/walletlink.js";

const email = byId("email");
const replaces = () => byId("ask-replace").checked;
/** The link that signs in: its token, and the signature of a wallet if it needs one. */
let link = null;
/** The token of an invitation that is accepted with an address or a wallet. */
let invitation = null;

function showAsk(notice = "") {
  say(byId("ask-notice"), notice);
  showStep("ask-step", "Sign in by email");
}

async function ask() {
  complain(email, "");
  const address = email.value.trim();
  if (address === "" || !email.validity.valid) {
    complain(email, address === "" ? "Enter your email address." : "This is not a valid email address.");
    email.focus();
    return;
  }
  await busy(byId("ask-button"), async () => {
    try {
      const body = { email: address, ...(invitation && { invitation }) };
      await callApi(replaces() ? "/api-key/recover/email" : "/api-key/sessions/email", { method: "POST", body });
    } catch (error) {
      complain(email, error.fields?.email ? `The email address ${error.fields.email}.` : sentence(error));
      email.focus();
      return;
    }
    byId("sent-to").textContent = address;
    byId("sent-lifetime").textContent = replaces() ? "ten minutes" : "15 minutes";
    showStep("sent-step", "Check your mail");
    byId("recover-title").focus();
  });
}

/** The idempotency key of this link's recovery, so that a lost response can be repeated, also after a reload. */
function recoveryOf(token) {
  const earlier = rememberedRecovery();
  if (earlier?.token === token) return earlier.recovery;
  const recovery = secretText();
  rememberRecovery({ token, recovery });
  return recovery;
}

async function confirm() {
  const token = linkToken();
  say(byId("confirm-error"), "");
  await busy(byId("confirm-button"), async () => {
    try {
      const headers = { "Idempotency-Key": recoveryOf(token) };
      const { api_key: key, remaining_keys: others } = await callApi("/api-key/recover/email/confirm", { method: "POST", body: { token }, headers });
      showDone(key, others);
    } catch (error) {
      if (error.code === "link_expired") {
        forgetRecovery();
        forgetLink();
        showAsk("This link no longer works: it was already used, was replaced by a newer one, or is older than ten minutes. Request a new one.");
        byId("recover-title").focus();
      } else {
        say(byId("confirm-error"), sentence(error));
      }
    }
  });
}

/** Says why the browser is not signed in. */
function notSignedIn(error) {
  if (error.code !== "link_expired") {
    say(byId("sign-in-error"), sentence(error));
    return;
  }
  forgetLink();
  showAsk("This link no longer works: it was already used, was replaced by a newer one, or is older than 15 minutes. Request a new one.");
  byId("recover-title").focus();
}

/** Shows the accounts before the user signs in to one: the link may come from someone else. */
async function nameAccounts(shown) {
  const place = byId("sign-in-account");
  place.replaceChildren();
  try {
    const { accounts, joins, needs_identity: asks } = await accountsOfLink(shown);
    if (shown !== link) return;
    if (asks) acceptAs(shown.token, accounts[0]);
    else place.replaceChildren(...(accounts.length > 1 ? accountChooser(accounts) : only(accounts[0], joins)));
  } catch (error) {
    if (shown === link) notSignedIn(error);
  }
}

const only = (account, joins) => [joins ? "You are invited to " : "This signs you in to ", ...accountName(account), joins ? ". If you do not know it, close this page." : ". If that is not your account, close this page."].filter(Boolean);

/** Asks who accepts an invitation, because its link does not identify them. */
function acceptAs(token, { agent_name: name, role }) {
  invitation = token;
  link = null;
  forgetLink();
  byId("ask-sign-in").checked = true;
  byId("ask-kinds").hidden = true;
  byId("ask-about").textContent = "Enter your email address, and we'll send you a link, or use a wallet. You sign in with it from then on.";
  showAsk(`You are invited to ${name}, as ${role}.`);
}

/** Continues with a wallet's signature instead of a link by mail. */
function useWallet(signed) {
  link = signed;
  showStep("sign-in-step", "Sign in");
  nameAccounts(link);
  byId("recover-title").focus();
}

async function signIn() {
  say(byId("sign-in-error"), "");
  await busy(byId("sign-in-button"), async () => {
    try {
      await signInByLink(ofChosenAccount(link));
    } catch (error) {
      notSignedIn(error);
      return;
    }
    forgetLink();
    location.assign("/metering/account");
  });
}

function showDone(key, others) {
  // A rotation that this tab had begun was for the replaced key.
  forgetRotation();
  const open = h("a", { class: "button", href: "/metering/account", on: { click: () => rememberKey(key) } }, "Open your account");
  byId("done-step").replaceChildren(...newKey(key, others), h("div", { class: "actions" }, open));
  showStep("done-step", "Your key was replaced");
  forgetRecovery();
  forgetLink();
  byId("done-step").querySelector("h2").focus();
}

function start() {
  if (signInToken()) {
    link = { token: signInToken() };
    showStep("sign-in-step", "Sign in");
    nameAccounts(link);
  } else if (linkToken()) showStep("confirm-step", "Replace your key");
  else showAsk();
}

onSubmit(byId("ask-form"), ask);
onSubmit(byId("confirm-form"), confirm);
onSubmit(byId("sign-in-form"), signIn);
email.addEventListener("input", () => complain(email, ""));
byId("again").addEventListener("click", () => {
  showAsk();
  email.focus();
});
offerWallet(useWallet, () => (invitation ? { invitation } : {}));
addEventListener("hashchange", () => {
  if (linkToken() || signInToken()) start();
});
start();
