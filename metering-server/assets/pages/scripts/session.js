// What this tab remembers, in sessionStorage only: the key and whose it is, a payment or a rotation in progress, the quote
// on the page, a signed payment, the wallet that was chosen, and the plan to buy.

const KEY = "metering.key";
const NAME = "metering.name";
const PAYMENT = "metering.payment";
const ROTATION = "metering.rotation";
const RECOVERY = "metering.recovery";
const QUOTE = "metering.quote";
const WALLET = "metering.wallet";
const SIGNED = "metering.signed";
const PLAN = "metering.plan";

export const rememberedKey = () => sessionStorage.getItem(KEY);
export const rememberKey = (key) => sessionStorage.setItem(KEY, key);

export function forgetKey() {
  sessionStorage.removeItem(KEY);
  sessionStorage.removeItem(NAME);
}

/** The name of the signed-in account, once it is known. */
export const rememberedName = () => sessionStorage.getItem(NAME);
export const rememberName = (name) => sessionStorage.setItem(NAME, name);

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

/** The id of the quote that the page waits to be paid, and whose it is. Forgetting it loses nothing: the service knows it. */
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

/** The payment that was signed and is not known to be over, with its account. It can be sent again, never signed again. */
export const rememberedSigned = () => remembered(SIGNED);
export const rememberSigned = (signed) => sessionStorage.setItem(SIGNED, JSON.stringify(signed));

/** Forgets a signed payment: `signed`, if it is still the one that is remembered, or else whichever it is. */
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
