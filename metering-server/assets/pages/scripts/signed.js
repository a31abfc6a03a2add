// Paying by signature: the amounts to choose from, and the page of one payment.

import { sentence } from "/assets/api.js";
import { settle, signOffer } from "/assets/authorization.js";
import { amount, group, plural } from "/assets/decimal.js";
import { h, halves, onSubmit } from "/assets/dom.js";
import { walletChoice } from "/assets/purchase.js";
import { forgetSigned, rememberedSigned } from "/assets/session.js";
import { connected, stepList } from "/assets/steps.js";
import { onWallets, wallet, wallets } from "/assets/wallet.js";

const nameOf = (chains, id) => chains.find(({ chain_id: own }) => own === id) ?? { chain_id: id, name: `chain ${id}`, rpc_url: "", explorer_url: "" };
const priceOf = ({ token_amount: tokens, token_symbol: symbol }) => `${group(tokens)} ${symbol}`;

/** The form to choose an amount. Calls `pay` with the chosen offer. `problem` is shown first. */
export function offersForm({ offers, chains }, { signal, problem, pay }) {
  const card = (offer, number) =>
    h(
      "label",
      { class: "offer choice" },
      h("input", { type: "radio", name: "offer", value: String(number) }),
      h("span", { class: "offer-head" }, h("span", { class: "offer-price" }, h("span", { class: "price" }, priceOf(offer)), " ", h("span", { class: "offer-chain" }, `on ${nameOf(chains, offer.chain_id).name}`))),
      h("span", { class: "offer-credits" }, amount(offer.credits), ` ${plural(offer.credits, "credit")}`),
    );
  const alert = problem && h("div", { class: "notice notice-bad", role: "alert", tabindex: "-1" }, problem);
  const chooser = h("div", {});
  const without = h("p", { class: "hint", "data-needs": "wallet" }, "There is no wallet in this browser that could sign.");
  const button = h("button", { class: "button", type: "submit", "data-action": "sign" });
  const form = h(
    "form",
    { class: "plan-form", id: "sign-form", method: "post", on: { change: () => arrange() } },
    h("h2", {}, "Pay by signature"),
    h("p", { class: "soft" }, "For small amounts. Your wallet signs the payment, and the service sends it: you pay no gas, and need no coins of the chain."),
    alert,
    h("fieldset", { class: "offers-chain" }, h("legend", {}, "Amount"), h("div", { class: "offers" }, ...offers.map(card))),
    chooser,
    h("div", { class: "plan-next" }, button, without),
  );
  form.querySelector("input").checked = true;
  const chosen = () => offers[Number(form.elements.offer.value)];
  const arrange = () => {
    button.hidden = wallets().length === 0;
    without.hidden = !button.hidden;
    button.textContent = `Sign to pay ${priceOf(chosen())}`;
  };
  const found = () => {
    chooser.replaceChildren(...walletChoice(arrange));
    arrange();
  };
  onSubmit(form, () => wallet() && pay(chosen()));
  onWallets(found, signal);
  found();
  return form;
}

/**
 * Fills `place` until `signal` is aborted: has `offer` signed, or continues with an earlier signed payment. Calls
 * `done` with the service's response, and `back` for the amounts, with a problem or without.
 */
export function showSigned(place, { offer, offers, coin, account, key, signal, done, back }) {
  const known = rememberedSigned();
  const subject = known ?? offer;
  const chain = nameOf(offers.chains, subject.chain_id);
  const sum = `${group(subject.credits)} ${plural(subject.credits, "credit")}`;
  const planned = {
    wallet: "Your wallet shares its address with this page.",
    sign: ["It asks you to sign a payment of ", h("strong", {}, priceOf(subject)), offer && " to ", offer && h("span", { class: "mono break" }, halves(offer.recipient)), ` on ${chain.name}. It sends nothing itself.`].filter(Boolean),
    settle: "The service sends the payment, once, and pays the gas.",
    credit: `You get ${sum} and a receipt.`,
  };
  const steps = stepList(planned, {
    sign: ["You signed a payment of ", h("strong", {}, priceOf(subject)), ` on ${chain.name}.`],
    settle: "The service sent the payment, and paid the gas.",
    credit: `You got ${sum} and a receipt.`,
  });
  const heading = h("h2", { tabindex: "-1" }, `Pay ${priceOf(subject)}`);
  const notice = h("div", { class: "notice notice-bad", role: "alert", tabindex: "-1", hidden: true });
  const button = (label, act) => h("button", { class: "button button-quiet", type: "button", hidden: true, on: { click: act } }, label);
  const waiting = new AbortController();
  signal.addEventListener("abort", () => waiting.abort());
  // It appears where the form's button was: the second half of a double click must not trigger it.
  const stop = button("Stop waiting for the wallet", ({ detail }) => detail > 1 || waiting.abort());
  const again = button("Try again", () => send(rememberedSigned()));
  const leave = button("Back", () => back());
  const forget = button("Forget this payment", () => {
    forgetSigned();
    back();
  });
  const show = (...buttons) => [stop, again, leave, forget].forEach((each) => (each.hidden = !buttons.includes(each)));
  place.replaceChildren(
    h(
      "div",
      { class: "purchase", id: "signed-payment" },
      h(
        "section",
        { class: "card" },
        heading,
        h("p", { class: "soft" }, `${sum}, on ${chain.name}.`),
        notice,
        steps.element,
        h("div", { class: "actions" }, stop, again, leave, forget),
      ),
    ),
  );
  heading.focus();

  const complain = (words, ...buttons) => {
    notice.textContent = words;
    notice.hidden = false;
    show(...buttons);
    notice.focus();
  };

  async function send(signed) {
    if (!signed) {
      back();
      return;
    }
    notice.hidden = true;
    show(leave);
    steps.say("wallet", "done", "", connected(signed.from));
    steps.say("sign", "done", "");
    try {
      const response = await settle(signed, { key, say: steps.say, signal });
      if (response) done(response);
    } catch (error) {
      if (signal.aborted) return;
      // A payment that is still stored may yet be executed, so no other is offered.
      if (!rememberedSigned()) {
        back(sentence(error));
        return;
      }
      steps.say("settle", "", "");
      complain(`${sentence(error)} Whether the payment was taken is not known yet. Trying again sends the same one.`, again, leave, forget);
    }
  }

  async function sign() {
    show(stop);
    try {
      const signed = await signOffer({ offer, chain, coin, account }, steps.say, waiting.signal);
      if (!signal.aborted) send(signed);
    } catch (error) {
      if (!signal.aborted) back(sentence(error));
    }
  }

  if (known && known.org_id !== account.org_id) {
    complain(`A signed payment for account ${known.org_id} has not been confirmed yet. Sign in to that account to see what became of it.`, forget, leave);
  } else if (known) {
    send(known);
  } else {
    sign();
  }
}

/** Shown instead of the form: the earlier signed payment. `resume` shows it. */
export function pendingNotice(resume) {
  const signed = rememberedSigned();
  const open = h("button", { class: "button button-quiet", type: "button", "data-action": "resume", on: { click: resume } }, "See what became of it");
  return h(
    "div",
    { class: "notice notice-warn top-up-more", id: "signed-pending", role: "status" },
    h("p", {}, h("strong", {}, `A signed payment of ${priceOf(signed)} is not confirmed yet. `), "It is credited once, when it is. Do not pay again."),
    h("div", { class: "actions" }, open),
  );
}
