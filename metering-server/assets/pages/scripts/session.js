// What this tab remembers, in sessionStorage only: the key and whose it is, a payment or a rotation in progress, the
// quote on the page, a signed payment, the chosen wallet, and the plan to buy. All tabs remember whether this browser
// is kept signed in, and as whom; the session itself is in a cookie that no script can read.

const KEY = "metering.key";
const NAME = "metering.name";
const PAYMENT = "metering.payment";
const ROTATION = "metering.rotation";
const RECOVERY = "metering.recovery";
const QUOTE = "metering.quote";
const WALLET = "metering.wallet";
const SIGNED = "metering.signed";
const PLAN = "metering.plan";

const KEPT = "metering.kept";
const FORM = /^sk_live_[A-Za-z0-9]+$/;

/** Used instead of the key when this browser is signed in with a session: `callApi` accepts it instead of one. */
export const SESSION = "session";

/** The key in a text that was typed or pasted, or null. */
export function readKey(text) {
  // Text copied from a terminal or chat may contain line breaks or invisible characters.
  const key = text.replace(/[\s\p{Cf}]/gu, "");
  return FORM.test(key) ? key : null;
}

/** The key of this tab, or `SESSION`, or null if nobody is signed in. */
export const rememberedKey = () => ownKey() ?? (localStorage.getItem(KEPT) === null ? null : SESSION);
/** The key itself, if this tab has it. */
export const ownKey = () => sessionStorage.getItem(KEY);
export const rememberKey = (key) => sessionStorage.setItem(KEY, key);

/** Remembers that this browser is kept signed in, instead of the key. */
export function rememberSession() {
  localStorage.setItem(KEPT, rememberedName() ?? "");
  sessionStorage.removeItem(KEY);
}

export const forgetSession = () => localStorage.removeItem(KEPT);
export const hasSession = () => localStorage.getItem(KEPT) !== null;

/** Forgets who is signed in. */
export function forgetKey() {
  sessionStorage.removeItem(KEY);
  sessionStorage.removeItem(NAME);
  forgetSession();
}

/** The name of the signed-in account, once it is known. */
export const rememberedName = () => sessionStorage.getItem(NAME) ?? (rememberedKey() === SESSION ? localStorage.getItem(KEPT) || null : null);

export function rememberName(name) {
  sessionStorage.setItem(NAME, name);
  if (rememberedKey() === SESSION) localStorage.setItem(KEPT, name);
}

/** The idempotency key of a rotation whose response has not arrived. With it and the old key, anyone can derive the new key. */
export const rememberedRotation = () => sessionStorage.getItem(ROTATION);
export const rememberRotation = (rotation) => sessionStorage.setItem(ROTATION, rotation);
export const forgetRotation = () => sessionStorage.removeItem(ROTATION);

/** The link of a recovery whose response has not arrived, and its idempotency key. */
export const rememberedRecovery = () => remembered(RECOVERY);
export const rememberRecovery = (recovery) => sessionStorage.setItem(RECOVERY, JSON.stringify(recovery));
export const forgetRecovery = () => sessionStorage.removeItem(RECOVERY);

/** The payment that has not been registered yet, if there is one. */
export const rememberedPayment = () => remembered(PAYMENT);

function remembered(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name));
  } catch {
    return null;
  }
}

export const rememberPayment = (payment) => sessionStorage.setItem(PAYMENT, JSON.stringify(payment));
export const forgetPayment = () => sessionStorage.removeItem(PAYMENT);

/** Marks a payment as one that its quote does not credit, so it is registered by its hash. */
export function withoutQuote({ quote_id: _, ...payment }) {
  rememberPayment(payment);
  return payment;
}

/**
 * The id of the quote whose payment the page waits for, and its account. Forgetting it loses nothing: the service knows
 * it.
 */
export function rememberedQuote() {
  try {
    return JSON.parse(sessionStorage.getItem(QUOTE));
  } catch {
    return null;
  }
}

export const rememberQuote = ({ org_id, quote_id }) => sessionStorage.setItem(QUOTE, JSON.stringify({ org_id, quote_id }));
export const forgetQuote = () => sessionStorage.removeItem(QUOTE);

/** The plan that was chosen to buy, as `CHAIN/ID`, until its payment opens: signing up and signing in come between. */
export const rememberedPlan = () => sessionStorage.getItem(PLAN);
export const rememberPlan = (plan) => sessionStorage.setItem(PLAN, plan);
export const forgetPlan = () => sessionStorage.removeItem(PLAN);

/** The wallet that was chosen in this tab, by its reverse domain name. */
export const rememberedWallet = () => sessionStorage.getItem(WALLET);
export const rememberWallet = (id) => sessionStorage.setItem(WALLET, id);

/**
 * The payment that was signed and is not known to be over, with its account. It can be resent, but never signed again.
 */
export const rememberedSigned = () => remembered(SIGNED);
export const rememberSigned = (signed) => sessionStorage.setItem(SIGNED, JSON.stringify(signed));

/** Forgets a signed payment: `signed` if it is still the stored one, or else the stored one. */
export function forgetSigned(signed = rememberedSigned()) {
  if (signed?.header === rememberedSigned()?.header) sessionStorage.removeItem(SIGNED);
}

/** Replaces or removes a remembered payment, unless it was forgotten or replaced by another one in the meantime. */
export function replacePayment(payment, known = null) {
  if (JSON.stringify(rememberedPayment()) !== JSON.stringify(payment)) return;
  if (known) rememberPayment(known);
  else forgetPayment();
}

export function forgetEverything() {
  forgetKey();
  forgetPayment();
  forgetRotation();
  forgetRecovery();
  forgetQuote();
  forgetSigned();
  forgetPlan();
}
