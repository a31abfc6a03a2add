// What this tab remembers, in sessionStorage only: the key, and a payment in progress.

const KEY = "metering.key";
const PAYMENT = "metering.payment";

export const rememberedKey = () => sessionStorage.getItem(KEY);
export const rememberKey = (key) => sessionStorage.setItem(KEY, key);
export const forgetKey = () => sessionStorage.removeItem(KEY);

/** The payment that has not been registered yet, if there is one. */
export function rememberedPayment() {
  try {
    return JSON.parse(sessionStorage.getItem(PAYMENT));
  } catch {
    return null;
  }
}

export const rememberPayment = (payment) => sessionStorage.setItem(PAYMENT, JSON.stringify(payment));
export const forgetPayment = () => sessionStorage.removeItem(PAYMENT);

/** Replaces or removes a remembered payment, unless it was forgotten or replaced by another one in the meantime. */
export function replacePayment(payment, known = null) {
  if (JSON.stringify(rememberedPayment()) !== JSON.stringify(payment)) return;
  if (known) rememberPayment(known);
  else forgetPayment();
}

export function forgetEverything() {
  forgetKey();
  forgetPayment();
}
