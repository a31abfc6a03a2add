// The TOP UP tab: choose a plan, pay for it from the browser's wallet, and register the payment.

import { callApi, sentence } from "/assets/api.js";
import { amount, plural } from "/assets/decimal.js";
import { busy, byId, h, onSubmit } from "/assets/dom.js";
import { TX_HASH, pay, register } from "/assets/payment.js";
import { byChain, price } from "/assets/plans.js";
import { forgetPayment, rememberPayment, rememberedPayment } from "/assets/session.js";
import { provider } from "/assets/wallet.js";

const STEPS = { wallet: "Wallet", network: "Network", send: "Payment", register: "Credits" };

/** The tab of one account, until it signs out. */
export class TopUp {
  #panel;
  #key;
  #account;
  #credited;
  #groups = [];
  /** The last chosen plan, as `CHAIN/ID`. */
  #chosen = null;
  /** Aborted when the account's tab ends, which also ends waiting for the wallet. */
  #end = new AbortController();

  /** `credited` is called when the account has been credited. */
  constructor(panel, { key, account, credited }) {
    this.#panel = panel;
    this.#key = key;
    this.#account = account;
    this.#credited = credited;
  }

  /** Shows the tab, and resumes a payment that was in progress when the page was left. */
  async start() {
    const sent = rememberedPayment();
    if (sent) {
      this.#resume(sent);
      return;
    }
    this.#panel.replaceChildren(h("p", { class: "soft", role: "status" }, "Loading plans …"));
    try {
      this.#groups = byChain(await callApi("/credits/plans"));
      if (!this.#ended) this.#choose();
    } catch (error) {
      if (!this.#ended) this.#fail(error, [this.#button("Try again", () => this.start())]);
    }
  }

  /** Switches to the new key after a rotation. */
  useKey(key) {
    this.#key = key;
  }

  /** Stops showing and requesting anything. */
  end() {
    this.#end.abort();
  }

  get #ended() {
    return this.#end.signal.aborted;
  }

  #choose(problem) {
    if (this.#groups.length === 0) {
      this.#panel.replaceChildren(h("div", { class: "card centred" }, h("h2", {}, "No plans on sale"), h("p", { class: "soft" }, "There is nothing to buy at the moment.")));
      return;
    }
    const failure = problem && h("div", { class: "notice notice-bad", role: "alert", tabindex: "-1" }, problem);
    const side = h("aside", { class: "stack-gap" }, this.#byHash());
    const main = provider() ? this.#planForm(failure) : h("div", { class: "card" }, failure, ...withoutWallet());
    this.#panel.replaceChildren(h("div", { class: "split" }, main, side));
    failure?.focus();
  }

  #planForm(failure) {
    const chosen = () => this.#plan(form.elements.plan.value);
    const button = h("button", { class: "button wide-button", type: "submit", "data-action": "pay" }, "Pay");
    const label = () => {
      this.#chosen = form.elements.plan.value;
      button.textContent = `Pay ${price(chosen().plan)}`;
    };
    const groups = this.#groups.map(({ chain, plans }) =>
      h("fieldset", { class: "choices-chain" }, h("legend", {}, `On ${chain.name}`), h("div", { class: "choices" }, ...plans.map((plan) => this.#choice(plan)))),
    );
    const form = h("form", { class: "card", method: "post", on: { change: label } }, h("h2", {}, "Choose a plan"), failure, ...groups, button);
    const radios = [...form.querySelectorAll("input")];
    (radios.find((radio) => radio.value === this.#chosen) ?? radios[0]).checked = true;
    label();
    onSubmit(form, () => busy(button, () => this.#pay(chosen())));
    return form;
  }

  #choice(plan) {
    const bonus = plan.bonus_credits === "0" ? null : [" + ", amount(plan.bonus_credits), " bonus"];
    const discount = plan.discount_percent && h("span", { class: "tag tag-accent" }, `${plan.discount_percent}% off`);
    return h(
      "label",
      { class: "choice" },
      h("input", { type: "radio", name: "plan", value: `${plan.chain_id}/${plan.id}` }),
      h("span", {}, h("strong", {}, plan.label || plan.id), " ", discount, h("span", { class: "under" }, h("br"), amount(plan.credits), ` ${plural(plan.credits, "credit")}`, bonus)),
      h("span", { class: "price" }, price(plan)),
    );
  }

  /** The form for payments that were made elsewhere or replaced in the wallet. */
  #byHash() {
    const options = this.#groups.flatMap(({ chain, plans }) =>
      plans.map((plan) => h("option", { value: `${plan.chain_id}/${plan.id}` }, `${plan.label || plan.id}: ${price(plan)} on ${chain.name}`)),
    );
    const select = h("select", { id: "paid-plan" }, ...options);
    const input = h("input", { id: "paid-hash", class: "mono", type: "text", autocomplete: "off", spellcheck: "false", placeholder: "0x…", "aria-describedby": "paid-hash-error" });
    const wrong = h("p", { class: "field-error", id: "paid-hash-error", role: "alert", hidden: true });
    const form = h(
      "form",
      { method: "post" },
      h("div", { class: "field" }, h("label", { for: "paid-plan" }, "Plan"), select),
      h("div", { class: "field" }, h("label", { for: "paid-hash" }, "Transaction hash"), input, wrong),
      h("button", { class: "button button-quiet wide-button", type: "submit" }, "Register payment"),
    );
    onSubmit(form, () => {
      const hash = input.value.trim();
      wrong.hidden = TX_HASH.test(hash);
      wrong.textContent = wrong.hidden ? "" : "A transaction hash is 0x and 64 hexadecimal digits.";
      if (!wrong.hidden) return;
      const { plan } = this.#plan(select.value);
      const sent = { org_id: this.#account.org_id, plan_id: plan.id, chain_id: plan.chain_id, label: plan.label || plan.id, from: null, stage: "sent", tx_hash: hash.toLowerCase() };
      rememberPayment(sent);
      this.#register(sent);
    });
    return h("section", { class: "card" }, h("h2", {}, "Already paid?"), h("p", { class: "soft" }, "Register a payment by its transaction hash, whichever wallet it came from."), form);
  }

  #plan(value) {
    for (const { chain, plans } of this.#groups) {
      const plan = plans.find((candidate) => `${candidate.chain_id}/${candidate.id}` === value);
      const coin = plans.find((candidate) => candidate.payment_kind === "native_value")?.token_symbol ?? "ETH";
      if (plan) return { plan, chain, coin };
    }
    throw new Error("This plan is no longer on sale.");
  }

  async #pay(choice) {
    const say = this.#steps(`Paying ${price(choice.plan)}`);
    const waiting = new AbortController();
    const cancel = this.#button("Stop waiting for the wallet", () => waiting.abort());
    this.#end.signal.addEventListener("abort", () => waiting.abort());
    byId("payment-progress").append(h("div", { class: "actions" }, cancel));
    this.#panel.querySelector("h2").focus();
    try {
      const sent = await pay({ ...choice, account: this.#account }, say, waiting.signal);
      if (this.#ended) return;
      cancel.parentElement.remove();
      await this.#register(sent, say);
    } catch (error) {
      if (this.#ended) return;
      const left = rememberedPayment();
      if (left) this.#resume(left, sentence(error));
      else this.#choose(sentence(error));
    }
  }

  /** Resumes a remembered payment. */
  #resume(sent, problem) {
    if (sent.org_id !== this.#account.org_id) {
      this.#fail(`A payment for account ${sent.org_id} has not been registered. Sign in to that account to register it.`, [this.#forget(sent)]);
    } else if (sent.stage === "sent" && !problem) {
      this.#register(sent);
    } else if (sent.stage === "sent") {
      this.#fail(problem, [this.#button("Try again", () => this.#register(sent)), this.#forget(sent)], sent);
    } else {
      this.#uncertain(sent, problem);
    }
  }

  /** The wallet was asked to pay, and whether it did is unknown. */
  #uncertain(sent, problem) {
    const input = h("input", { id: "lost-hash", class: "mono", type: "text", autocomplete: "off", spellcheck: "false", placeholder: "0x…", "aria-describedby": "lost-hash-error" });
    const wrong = h("p", { class: "field-error", id: "lost-hash-error", role: "alert", hidden: true });
    const form = h(
      "form",
      { method: "post" },
      h("div", { class: "field" }, h("label", { for: "lost-hash" }, "Transaction hash"), input, wrong),
      h("div", { class: "actions" }, h("button", { class: "button", type: "submit" }, "Register payment"), this.#button("Nothing was sent: start again", () => this.#startOver())),
    );
    onSubmit(form, () => {
      const hash = input.value.trim();
      wrong.hidden = TX_HASH.test(hash);
      wrong.textContent = wrong.hidden ? "" : "A transaction hash is 0x and 64 hexadecimal digits.";
      if (!wrong.hidden) return;
      const known = { ...sent, stage: "sent", tx_hash: hash.toLowerCase() };
      rememberPayment(known);
      this.#register(known);
    });
    this.#panel.replaceChildren(
      h(
        "div",
        { class: "card", id: "uncertain-payment" },
        h("h2", {}, "Was the payment sent?"),
        problem && h("div", { class: "notice notice-warn", role: "alert" }, problem),
        h("p", {}, `Your wallet was asked to pay for the plan ${sent.label} but did not report whether it did. Check the wallet's activity. If the payment is there, enter its hash; it will not be sent again.`),
        form,
      ),
    );
  }

  async #register(sent, say = this.#steps(`Payment for ${sent.label}`)) {
    let waiting = true;
    const stop = this.#button("Stop waiting", () => {
      waiting = false;
      this.#resume(sent, "The payment is not registered yet. Nothing is lost: you can register it once it is confirmed.");
    });
    byId("payment-progress").append(h("div", { class: "actions" }, stop));
    for (const step of ["wallet", "network"]) say(step, "done");
    say("send", "done", sent.tx_hash);
    try {
      const response = await register(sent, this.#key, say, () => waiting && !this.#ended);
      if (this.#ended) return;
      this.#done(response);
      this.#credited();
    } catch (error) {
      const unproven = error.code === "payer_proof_required";
      if (waiting && !this.#ended) this.#resume(sent, sentence(unproven ? new Error(error.body.hint) : error));
    }
  }

  #done(response) {
    const words = response.already_credited ? "This payment was already credited." : [amount(response.amount_added, { sign: true }), ` ${plural(response.amount_added, "credit")}.`];
    this.#panel.replaceChildren(
      h(
        "div",
        { class: "card", id: "topped-up" },
        h("h2", { tabindex: "-1" }, response.already_credited ? "Nothing to do" : "Topped up"),
        h("p", {}, words, " The balance is ", amount(response.credit_balance), "."),
        h("div", { class: "actions" }, this.#button("Top up again", () => this.start())),
      ),
    );
    this.#panel.querySelector("h2").focus();
  }

  /** Shows a list of steps, and returns the function that updates it. */
  #steps(title) {
    const items = Object.fromEntries(Object.entries(STEPS).map(([step, name]) => [step, h("li", { "data-step": step }, h("span", {}, name))]));
    const list = h("div", { role: "status" }, h("ol", { class: "progress" }, ...Object.values(items)));
    this.#panel.replaceChildren(h("div", { class: "card", id: "payment-progress" }, h("h2", { tabindex: "-1" }, title), list));
    return (step, state, detail) => {
      items[step].dataset.state = state;
      if (detail !== undefined) items[step].replaceChildren(h("span", {}, STEPS[step], h("span", { class: "under" }, detail)));
    };
  }

  #fail(problem, actions, sent) {
    const facts = sent && h("dl", { class: "facts" }, h("div", {}, h("dt", {}, "Plan"), h("dd", {}, sent.label)), h("div", {}, h("dt", {}, "Transaction"), h("dd", { class: "mono" }, sent.tx_hash)));
    const words = typeof problem === "string" ? problem : sentence(problem);
    this.#panel.replaceChildren(h("div", { class: "card", id: "payment-failed" }, h("div", { class: "notice notice-bad", role: "alert" }, words), facts, h("div", { class: "actions" }, ...actions)));
  }

  #button(label, act) {
    return h("button", { class: "button button-quiet", type: "button", on: { click: act } }, label);
  }

  #forget(sent) {
    const dialog = h(
      "dialog",
      { "aria-labelledby": "forget-title" },
      h("h2", { id: "forget-title" }, "Forget this payment?"),
      h("p", {}, "This does not undo a payment that was sent. Save its transaction hash to register it later:"),
      h("p", { class: "mono" }, sent.tx_hash ?? "not known"),
      h("form", { method: "dialog", class: "actions" }, h("button", { class: "button", value: "forget" }, "Forget it"), h("button", { class: "button button-quiet", value: "" }, "Keep it")),
    );
    dialog.addEventListener("close", () => {
      if (dialog.returnValue === "forget") this.#startOver();
      dialog.remove();
    });
    return this.#button("Forget this payment", () => {
      document.body.append(dialog);
      dialog.showModal();
    });
  }

  #startOver() {
    forgetPayment();
    this.start();
  }
}

function withoutWallet() {
  return [
    h("h2", {}, "Pay from a wallet"),
    h("div", { class: "notice", "data-needs": "wallet" }, h("p", {}, h("strong", {}, "This needs a browser wallet.")), h("p", {}, "Install or enable one (any that provides window.ethereum, on the plan's network), and reload the page.")),
    h("p", { class: "soft" }, "Or send the price of a plan to its recipient from any wallet, and register the transaction here. See ", h("a", { href: "/credits/plans" }, "the list of plans"), " for prices and recipients."),
  ];
}
