// The result of a top-up: the credits, the balance, and the receipt.

import { amount, fromUnits, plural, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { rollTo } from "/assets/odometer.js";
import { transaction } from "/assets/steps.js";

/** The card. The balance may be unknown; `again` is a button for another payment. Its heading should get the focus. */
export function toppedUp({ already_credited: known, amount_added: added, credit_balance: balance, tx_hash: hash, url, receipt }, again) {
  const words = known ? "This payment was already credited." : [amount(added, { sign: true }), ` ${plural(added, "credit")}.`];
  const open = receipt && h("a", { class: "button", href: `/metering/receipt?number=${receipt}` }, "Open the receipt");
  return h(
    "div",
    { class: "card", id: "topped-up" },
    h("h2", { tabindex: "-1" }, known ? "Nothing to do" : "Topped up"),
    h("p", {}, words, balance && " The balance is ", balance && amount(balance), balance && "."),
    balance && odometer(balance, known ? balance : fromUnits(toUnits(balance) - toUnits(added))),
    hash && h("p", { class: "soft" }, receipt && `Receipt ${receipt}, transaction `, !receipt && "Transaction ", transaction(hash, url)),
    h("div", { class: "actions" }, open, again),
  );
}

/** The balance on drums, which roll up from the old balance. The text has said it already. */
function odometer(balance, before) {
  const meter = h("p", { class: "drums", id: "new-balance" });
  rollTo(meter, before, balance, 4);
  return h("div", { "aria-hidden": "true" }, meter);
}
