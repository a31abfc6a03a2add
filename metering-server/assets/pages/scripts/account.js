// The account page: sign in with a key, tabs, refresh, sign out.

import { callApi, sentence } from "/assets/api.js";
import { toUnits } from "/assets/decimal.js";
import { busy, byId, complain, h, onSubmit } from "/assets/dom.js";
import { isPending, pendingNotice, showVerification } from "/assets/email.js";
import { startFigures } from "/assets/figure.js";
import { showSignedIn } from "/assets/header.js";
import { isHolding } from "/assets/held.js";
import { keepNamedPlan } from "/assets/namedplan.js";
import { waitingNotice } from "/assets/pending.js";
import { onReturn } from "/assets/returning.js";
import { allowed, learnRights } from "/assets/rights.js";
import { SESSION, forgetEverything, forgetKey, forgetRotation, forgetSession, hasSession, readKey, rememberKey, rememberName, rememberedKey, rememberedPayment, rememberedPlan, rememberedQuote, rememberedRotation, rememberedSigned } from "/assets/session.js";
import { canKeep, endSession, keepSignedIn, staySignedIn } from "/assets/signin.js";
import { startTabs } from "/assets/tabs.js";
import { resetView, showUsage } from "/assets/usage.js";

const ACTIVITY = 50;
const PACE_DAYS = 30;
/** The age in milliseconds after which data is reloaded when the user returns. */
const STALE = 15_000;

/** Filled by the script of the other tabs. */
const REST = ["keys-place", "panel-webhooks", "panel-top-up", "panel-connect", "billing-details"];
/** Elements that show the account's data. */
const FILLED = [...REST, "panel-usage", "billing-action", "members-list", "devices-list", "data-action", "rotate", "email-recovery", "account-facts", "dashboard-notice", "lost-key-rotate"];

const loadRest = () => import("/assets/accounttabs.js");

const status = byId("account-status");
/** The open account, with its key or `SESSION`. */
let visit = null;
/** Work to do when a panel is first opened, by its id. */
const toStart = new Map();
let topUp = null;
let keys = null;
let webhooks = null;
/** Fills the settings tab, once it can be shown. */
let settings = null;
let tabs = null;

async function load(key) {
  const account = callApi("/credits/balance", { key });
  const [balance, summary, activity, receipts, volumes, held] = await Promise.all([
    account,
    // The pace is computed from more than a week.
    callApi(`/credits/usage/summary?days=${PACE_DAYS}`, { key }),
    callApi(`/credits/usage?limit=${ACTIVITY}`, { key }),
    // The account is shown even if purchases or volume tiers fail to load.
    callApi("/credits/receipts", { key }).catch((error) => ({ error })),
    callApi("/credits/usage/volumes", { key }).catch((error) => ({ error })),
    account.then((balance) => (isHolding(balance) ? callApi("/requests", { key }).catch((error) => ({ error })) : null)),
  ]);
  return { key, balance, summary, activity, receipts, held, volumes, now: summary.date };
}

/** Shows the data. Opens the account with `key` if none is open. */
function show(key, data) {
  const { balance } = data;
  learnRights(balance);
  byId("account-name").textContent = balance.agent_name;
  byId("account-facts").replaceChildren(h("code", {}, balance.org_id), balance.email ? ` · ${balance.email}` : "", balance.payer_address ? " · paid by " : "", balance.payer_address ? h("code", {}, balance.payer_address) : "");
  byId("dashboard-notice").replaceChildren(...waitingNotice(), ...pendingNotice(balance, rememberedKey), ...outOfCredits(balance));
  showVerification(byId("email-recovery"), balance, rememberedKey);
  showUsage(byId("panel-usage"), data, refresh);
  rememberName(balance.agent_name);
  showSignedIn();
  byId("sign-in").hidden = true;
  byId("dashboard").hidden = false;
  byId("tabs").hidden = false;
  if (visit) {
    visit.balance = balance;
    loadOpened();
    return;
  }
  visit = { key, balance, isFilled: false };
  tabs ??= startTabs(byId("tabs"), { opened: loadOpened });
  tabs.openNamed();
  if (rememberedPlan()) tabs.open("tab-top-up");
  // Continues what is in progress, whichever tab is open, and begins the payment of a chosen plan.
  if (isPaying() || rememberedRotation()) fillTabs(visit);
}

const isPaying = () => Boolean(rememberedPayment() || rememberedQuote() || rememberedSigned() || rememberedPlan());

/** Fills the tabs that the page does not open with, once. */
function fillTabs(opened) {
  if (opened.isFilled) return;
  opened.isFilled = true;
  const [here, secret] = [() => rememberedKey() === opened.key, () => opened.key];
  withRest(REST.map(byId), ({ KeysTab, TopUp, WebhooksTab, showConnect, showReplace, showSettings }) => {
    // Signed out meanwhile.
    if (visit !== opened) return;
    // Programs need the key itself.
    const connect = () => toStart.set("panel-connect", () => showConnect(byId("panel-connect"), () => (opened.key === SESSION ? null : opened.key)));
    const rotated = (newKey) => {
      if (hasSession()) staySignedIn(newKey);
      opened.key = newKey;
      rememberKey(newKey);
      topUp?.useKey(newKey);
      byId("panel-connect").replaceChildren();
      connect();
      // The downloads use the key, too.
      refresh();
    };
    topUp = new TopUp(byId("panel-top-up"), { key: opened.key, account: opened.balance, credited: () => refresh() });
    const unfinished = () => showReplace(byId("rotate"), { account: opened.balance, key: secret, here, rotated });
    unfinished();
    keys = new KeysTab(byId("keys-place"), { secret, here, rotated, ended: leaveKey, unfinished });
    webhooks = new WebhooksTab(byId("panel-webhooks"), { secret, here, ended: leaveKey });
    settings = () => showSettings({ key: secret, here, ended: () => (forgetSession(), signOut()), moved: () => refresh({ quiet: true }) });
    if (!byId("panel-settings").hidden) settings();
    connect();
    if (isPaying()) topUp.start();
    else toStart.set("panel-top-up", () => topUp.start());
    loadOpened();
  });
}

/**
 * Calls `work` with the rest of the page, a separate script that is loaded once, when it is needed. While it loads, and if it
 * cannot be loaded, `places` say so.
 */
async function withRest(places, work) {
  let rest;
  for (const place of places) place.replaceChildren(h("p", { class: "soft", role: "status" }, "Loading …"));
  try {
    rest = await loadRest();
  } catch {
    for (const place of places) {
      const again = h("button", { class: "button button-quiet button-small", type: "button", on: { click: () => withRest(places, work) } }, "Try again");
      place.replaceChildren(h("div", { class: "notice notice-bad", role: "alert" }, h("p", {}, "Could not load this part of the page."), h("div", { class: "actions" }, again)));
    }
    return;
  }
  work(rest);
}

/** Loads what is in the open tab; settings only when their `tab` is opened, since they may be edited. */
function loadOpened(tab) {
  if (visit && byId("panel-usage").hidden) fillTabs(visit);
  for (const [panel, start] of toStart) {
    if (byId(panel).hidden) continue;
    toStart.delete(panel);
    start();
  }
  if (!byId("panel-keys").hidden) keys?.load();
  if (!byId("panel-webhooks").hidden) webhooks?.load();
  if (tab === "tab-settings") settings?.();
}

function outOfCredits(balance) {
  // A new account is not out of credits: it gets them when its address is verified.
  const waits = isPending(balance) && toUnits(balance.email_verification.free_credits) > 0n;
  if (toUnits(balance.credit_balance) > 0n || waits) return [];
  const buy = h("button", { class: "button", type: "button", on: { click: () => tabs.open("tab-top-up") } }, "Top up");
  return [
    h(
      "div",
      { class: "notice notice-warn", id: "out-of-credits", role: "status" },
      h("h2", {}, "Out of credits"),
      h("p", {}, "Calls are refused with 402 until the balance is above zero. Your key stays valid. ", h("a", { href: "/docs/guides/errors#402-credits" }, "What programs should do"), "."),
      h("div", { class: "actions" }, ...allowed("pay", buy)),
    ),
  ];
}

async function refresh({ quiet = false } = {}) {
  const key = rememberedKey();
  if (!key) {
    // It was signed out in another tab.
    if (visit) leaveKey(visit.key);
    else askForKey();
    return;
  }
  // If the user has signed out or changed the key in the meantime, a late response must not show or delete anything.
  const late = () => rememberedKey() !== key;
  if (!quiet) status.textContent = "Loading …";
  loadedNow();
  try {
    const data = await load(key);
    if (late()) return;
    show(key, data);
    status.textContent = "";
  } catch (error) {
    if (late()) return;
    status.textContent = "";
    if (error.code === "unauthorized" && rememberedRotation()) {
      finishRotation(key);
    } else if (error.code === "unauthorized") {
      leaveKey(key);
    } else {
      const again = h("button", { class: "button button-quiet button-small", type: "button", on: { click: () => refresh() } }, "Try again");
      byId("dashboard").hidden = false;
      byId("dashboard-notice").replaceChildren(h("div", { class: "notice notice-bad", role: "alert", id: "load-error" }, h("p", {}, sentence(error)), h("div", { class: "actions" }, again)));
    }
  }
}

function leaveKey(key = rememberedKey()) {
  close();
  askForKey(key === SESSION ? "You were signed out: the session has ended, or its key was replaced or revoked." : "This key is no longer valid. It may have been replaced or revoked.");
}

/** The key is no longer valid, and this tab has requested its replacement: fetch the new key. */
function finishRotation(key) {
  byId("sign-in").hidden = true;
  byId("tabs").hidden = true;
  byId("dashboard").hidden = false;
  endTabs();
  for (const panel of document.querySelectorAll("#dashboard > [role=tabpanel]")) panel.hidden = panel.id !== "panel-keys";
  byId("keys-place").replaceChildren();
  const here = () => rememberedKey() === key;
  const rotated = (newKey) => {
    if (hasSession()) staySignedIn(newKey);
    rememberKey(newKey);
    const open = h("button", { class: "button", type: "button", on: { click: () => location.reload() } }, "Open account");
    byId("dashboard-notice").replaceChildren(h("div", { class: "actions", id: "after-rotation" }, open));
  };
  const place = byId("rotate");
  place.hidden = false;
  withRest([place], ({ showReplace }) => here() && showReplace(place, { account: {}, ended: leaveKey, key: () => key, here, rotated }));
}

function askForKey(problem = "") {
  status.textContent = "";
  byId("dashboard").hidden = true;
  byId("sign-in").hidden = false;
  byId("key").value = "";
  byId("keep-field").hidden = !canKeep();
  complain(byId("key"), problem);
  byId("buying").hidden = true;
  if (rememberedPlan() || byId("lost-key").open) helpToSignIn();
  byId("key").focus({ preventScroll: true });
}

/** Says which plan is being bought, and offers to replace a lost key, unless that is shown already. */
function helpToSignIn() {
  const place = byId("lost-key-rotate");
  if (place.hasChildNodes()) return;
  const here = () => !rememberedKey();
  const rotated = (key) => {
    forgetRotation();
    rememberKey(key);
    const open = h("button", { class: "button", type: "button", on: { click: () => refresh() } }, "Open account");
    place.after(h("div", { class: "actions", id: "after-rotation" }, open));
  };
  withRest([place], ({ showBuying, showRotate }) => {
    if (!here()) return;
    showBuying(byId("buying"), "Sign in to continue to the payment. Without a key, ", h("a", { href: "/metering#signup-title" }, "sign up"), " first.");
    showRotate(place, { here, rotated });
  });
}

/** Stops the work in progress in the tabs. */
function endTabs() {
  visit = null;
  toStart.clear();
  topUp?.end();
  topUp = null;
  keys = null;
  webhooks?.end();
  webhooks = null;
  settings = null;
}

/** Forgets the key and clears the account's data from the page. Keeps a payment in progress for its account. */
function close() {
  endTabs();
  byId("children")?.setAttribute("hidden", "");
  for (const part of document.querySelectorAll("#children-action, #children-list")) part.replaceChildren();
  forgetKey();
  resetView();
  for (const id of FILLED) byId(id).replaceChildren();
  byId("rotate").hidden = true;
  byId("account-name").textContent = "Account";
  byId("tabs").hidden = true;
  byId("after-rotation")?.remove();
  showSignedIn();
}

function signOut() {
  const kept = hasSession();
  close();
  forgetEverything();
  history.replaceState(null, "", location.pathname);
  askForKey();
  if (!kept) return;
  endSession().catch((error) => {
    // If it has ended already, there is nothing to do.
    if (error.code !== "unauthorized" && !rememberedKey()) complain(byId("key"), `This browser's session could not be ended: ${sentence(error)} Sign in again, then sign out.`);
  });
}

async function signIn() {
  const input = byId("key");
  const key = readKey(input.value);
  if (!key) {
    complain(input, "A key starts with sk_live_, followed by letters and digits. Copy all of it.");
    input.focus();
    return;
  }
  complain(input, "");
  const before = rememberedKey();
  await busy(byId("key-button"), async () => {
    try {
      const data = await load(key);
      // A lost key was replaced meanwhile. The new key is on the page and must not be replaced by this one.
      if (rememberedKey() !== before) return;
      // Password managers save it by this name.
      byId("username").value = data.balance.agent_name;
      if (byId("keep").checked) await keepSignedIn(key);
      else rememberKey(key);
      input.value = "";
      show(rememberedKey(), { ...data, key: rememberedKey() });
      byId("main").focus();
    } catch (error) {
      complain(input, error.code === "unauthorized" ? "This key is not valid. Check that it is complete and has not been replaced." : sentence(error));
      input.focus();
    }
  });
}

/** Signing out forgets a payment or a rotation in progress, so ask first. */
function confirmSignOut() {
  const sent = rememberedPayment();
  if (!sent && !rememberedRotation()) {
    signOut();
    return;
  }
  const words = sent
    ? ["A payment is not registered yet", h("p", {}, "Signing out forgets it here. Save its transaction hash to register it later:"), h("p", { class: "mono" }, sent.tx_hash ?? "not known: check your wallet's activity")]
    : ["Your new key has not arrived yet", h("p", {}, "The key may have been replaced, and only this tab can get the new one. If you sign out now, it is lost: open the Keys tab instead.")];
  const dialog = h(
    "dialog",
    { "aria-labelledby": "leave-title" },
    h("h2", { id: "leave-title" }, words[0]),
    ...words.slice(1),
    h("form", { method: "dialog", class: "actions" }, h("button", { class: "button", value: "leave" }, "Sign out"), h("button", { class: "button button-quiet", value: "" }, "Stay")),
  );
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "leave") signOut();
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
}

// A session may also have ended in the meantime.
const loadedNow = onReturn(() => (visit || byId("load-error")) && refresh({ quiet: true }), STALE);
keepNamedPlan();
startFigures();
onSubmit(byId("key-form"), signIn);
byId("key").addEventListener("input", () => complain(byId("key"), ""));
byId("lost-key").addEventListener("toggle", () => byId("lost-key").open && helpToSignIn());
// A pointer near the tabs means that one will be opened soon.
for (const event of ["pointerover", "focusin"]) byId("tabs").addEventListener(event, () => loadRest().catch(() => {}), { once: true });
byId("refresh").addEventListener("click", () => busy(byId("refresh"), () => refresh()));
byId("sign-out").addEventListener("click", confirmSignOut);
refresh();
