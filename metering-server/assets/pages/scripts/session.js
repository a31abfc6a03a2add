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

export function forgetEverything() {
  forgetKey();
  forgetPayment();
}
