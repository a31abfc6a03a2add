// Asks the owner of an account whether a program may have a key, and with which terms. The address of the page is the
// program's request (OAuth 2.1); the service says which program it is, and where the browser goes next.

import { callApi, sentence } from "/assets/api.js";
import { checkedForm } from "/assets/dialog.js";
import { busy, byId, complain, h, onSubmit, say, showStep } from "/assets/dom.js";
import { keyFields } from "/assets/keyform.js";
import { forgetPending, keepPending } from "/assets/pending.js";
import { learnRights, may, whyNot } from "/assets/rights.js";
import { SESSION, forgetKey, readKey, rememberKey, rememberedKey } from "/assets/session.js";
import { accountsOfLink, canKeep, keepSignedIn, signInByLink } from "/assets/signin.js";
import { accountChooser, ofChosenAccount, offerWallet } from "/assets/walletlink.js";

const PARAMETERS = ["response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method", "resource"];
/** The default budget. */
const BUDGET = { limit: "2", limit_reset: "monthly" };

const query = new URLSearchParams(location.search);
const authorization = Object.fromEntries(PARAMETERS.filter((name) => query.has(name)).map((name) => [name, query.get(name)]));
const status = byId("consent-status");
const title = byId("consent-title");
/** The service's description of the request. */
let asked = null;
/** The wallet's signature, kept while its owner chooses one of several accounts. */
let link = null;

/** Shows the current step, below the name of the program. */
function ask(step, heading) {
  status.textContent = "";
  showStep(step, heading);
  byId("program-step").hidden = !asked;
}

/** Shows why the request cannot be granted. The program is notified only if the browser may be redirected to it. */
function showOver(words) {
  byId("over-words").textContent = words;
  byId("over-back").hidden = !asked;
  ask("over-step", "No access");
  title.focus();
}

function leave(url) {
  forgetPending();
  location.replace(url);
}

async function start() {
  if (PARAMETERS.some((name) => query.getAll(name).length > 1)) {
    showOver("A parameter occurs twice in the address of this page. Go back to the program and connect again.");
    return;
  }
  try {
    asked = await callApi("/oauth/requests", { method: "POST", body: authorization });
  } catch (error) {
    const [[name, problem] = []] = Object.entries(error.fields ?? {});
    showOver(name ? `The program that sent you here cannot be given access: its ${name} ${problem}.` : sentence(error));
    return;
  }
  present();
  if (asked.problem) {
    showOver(`The program's request is not valid: ${asked.problem}.`);
    return;
  }
  keepPending(location.search, asked.client_name);
  await look();
}

/** Shows who asks. The program chose the name itself. */
function present() {
  title.textContent = `Give ${asked.client_name} access?`;
  byId("consent-program").textContent = asked.client_name;
  byId("consent-who").textContent = asked.client_host ? `Published by ${asked.client_host}.` : "The program chose this name itself, as any program can.";
  byId("consent-redirect").textContent = asked.redirect_host;
  byId("consent-here").hidden = !asked.redirects_to_this_machine;
}

/** Continues as the signed-in user. */
async function look() {
  const key = rememberedKey();
  if (!key) {
    ask("sign-in-step");
    return;
  }
  try {
    const { data, date } = await callApi("/keys/current", { key });
    const member = key === SESSION && data.scopes.includes("manage") ? await signedInMember(key) : null;
    learnRights(member ? await callApi("/credits/balance", { key }) : {});
    showTerms(key, data, date, member);
  } catch (error) {
    if (error.code === "unauthorized") forgetKey();
    ask("sign-in-step");
    complain(byId("key"), error.code === "unauthorized" ? "" : sentence(error));
  }
}

/** The session of a member, if this browser is signed in as one. */
async function signedInMember(key) {
  const { data } = await callApi("/api-key/sessions", { key });
  return data.find(({ current, member }) => current && member) ?? null;
}

function showTerms(key, own, date, member) {
  if (!own.scopes.includes("manage")) {
    ask("sign-in-step");
    complain(byId("key"), "The key that is signed in cannot give access: it lacks the scope manage. Use another key.");
    return;
  }
  if (!may("develop")) {
    ask("sign-in-step");
    complain(byId("key"), `${whyNot("develop")} Use a key, or another account.`);
    return;
  }
  const later = date.getTime() - Date.now();
  const now = () => new Date(Date.now() + later);
  const mayGive = (scope) => scope !== "topup" && (scope !== "manage" || asked.scopes.includes("manage"));
  const giver = { ...own, scopes: own.scopes.filter(mayGive) };
  const preset = { ...BUDGET, name: asked.client_name, scopes: asked.scopes.filter((scope) => giver.scopes.includes(scope)) };
  const { body, ...asking } = keyFields(preset, giver);
  const cancel = h("button", { class: "button button-quiet", type: "button", id: "deny", on: { click: () => leave(asked.cancel_url) } }, "Cancel");
  const form = checkedForm({
    ...asking,
    confirm: "Give access",
    other: cancel,
    send: (values) => callApi("/oauth/consents", { method: "POST", key, body: { authorization, key: body(values, now) } }),
    done: ({ redirect_to: url }) => leave(url),
  });
  byId("terms-account").replaceChildren(...(member ? ["You are signed in as ", h("strong", {}, member.member), `, ${member.role}. The program gets a child key of the account's first key, never that key itself.`] : ["You are signed in with the key ", h("strong", {}, own.name), ". The program gets a child key of it, never this key itself."]));
  byId("terms-form").replaceChildren(form);
  ask("terms-step");
}

async function signIn() {
  const input = byId("key");
  const key = readKey(input.value);
  complain(input, key ? "" : "A key starts with sk_live_, followed by letters and digits. Copy all of it.");
  if (!key) {
    input.focus();
    return;
  }
  await busy(byId("key-button"), async () => {
    try {
      await callApi("/keys/current", { key });
      if (byId("keep").checked) await keepSignedIn(key);
      else rememberKey(key);
    } catch (error) {
      complain(input, error.code === "unauthorized" ? "This key is not valid. Check that it is complete and has not been replaced." : sentence(error));
      input.focus();
      return;
    }
    input.value = "";
    await look();
  });
}

/** Signs in with a wallet's signature, to its account, or asks which one. */
async function useWallet(signed) {
  link = signed;
  try {
    const { accounts } = await accountsOfLink(link);
    byId("account-form").hidden = accounts.length === 1;
    byId("account-choice").replaceChildren(...(accounts.length === 1 ? [] : accountChooser(accounts)));
    if (accounts.length === 1) await enter();
    else byId("account-choice").querySelector("input").focus();
  } catch (error) {
    notEntered(error);
  }
}

async function enter() {
  await signInByLink(ofChosenAccount(link));
  byId("account-form").hidden = true;
  await look();
}

function notEntered(error) {
  byId("account-form").hidden = true;
  say(byId("wallet-error"), error.code === "link_expired" ? "That took longer than 15 minutes. Sign in with the wallet again." : sentence(error));
}

byId("keep-field").hidden = !canKeep();
byId("over-back").addEventListener("click", () => leave(asked.cancel_url));
byId("sign-in-deny").addEventListener("click", () => leave(asked.cancel_url));
byId("key").addEventListener("input", () => complain(byId("key"), ""));
byId("other-account").addEventListener("click", () => {
  forgetKey();
  ask("sign-in-step");
  byId("key").focus();
});
onSubmit(byId("key-form"), signIn);
onSubmit(byId("account-form"), () => busy(byId("account-button"), () => enter().catch(notEntered)));
offerWallet(useWallet);
start();
