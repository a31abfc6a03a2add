// What this tab remembers, in sessionStorage and nowhere else: the key, and a payment that is under way.

const KEY = "metering.key";
const PAYMENT = "metering.payment";

export const rememberedKey = () => sessionStorage.getItem(KEY);
export const rememberKey = (key) => sessionStorage.setItem(KEY, key);
export const forgetKey = () => sessionStorage.removeItem(KEY);

/** The payment that is not registered yet, if there is one. */
export function rememberedPayment() {
  try {
    return JSON.parse(sessionStorage.getItem(PAYMENT));
  } catch {
    return null;
  }
}

export const rememberPayment = (payment) => sessionStorage.setItem(PAYMENT, JSON.stringify(payment));
export const forgetPayment = () => sessionStorage.removeItem(PAYMENT);

/** Puts what is known now in a payment's place, or nothing; unless it was forgotten meanwhile, or another has its place. */
export function replacePayment(payment, known = null) {
  if (JSON.stringify(rememberedPayment()) !== JSON.stringify(payment)) return;
  if (known) rememberPayment(known);
  else forgetPayment();
}

export function forgetEverything() {
  forgetKey();
  forgetPayment();
}
