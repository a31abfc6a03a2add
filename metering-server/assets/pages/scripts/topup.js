// The TOP UP tab: choose a plan, pay its quote from any wallet, or register a payment that was made without one.

import { callApi, sentence } from "/assets/api.js";
import { autoTopUp } from "/assets/autotopup.js";
import { cardForm } from "/assets/checkout.js";
import { busy, h, onSubmit } from "/assets/dom.js";
import { TX_HASH, follow, look, register, untilReversed } from "/assets/payment.js";
import { byChain, choices, planKey, price } from "/assets/plans.js";
import { howItWorks, showPurchase } from "/assets/purchase.js";
import { coinOf, named, sumOf } from "/assets/quote.js";
import { may, whyNot } from "/assets/rights.js";
import { offersForm, pendingNotice, showSigned } from "/assets/signed.js";
import { forgetPayment, forgetPlan, forgetQuote, rememberPayment, rememberQuote, rememberedPayment, rememberedPlan, rememberedQuote, rememberedSigned, withoutQuote } from "/assets/session.js";
import { stepList, transaction } from "/assets/steps.js";
import { toppedUp } from "/assets/toppedup.js";

/** The tab of one account, until it signs out. */
export class TopUp {
  #panel;
  #key;
  #account;
  #credited;
  #groups = [];
  #cards = [];
  /** The offers that can be paid by signature, with their chains. */
  #offers = { offers: [], chains: [] };
  /** The last chosen plan, as `CHAIN/ID`. */
  #chosen = null;
  /** Aborted when the account's tab ends, which also ends waiting for the wallet. */
  #end = new AbortController();
  /** Aborted when something else is shown. */
  #view = new AbortController();

  /** `credited` is called when the account has been credited. */
  constructor(panel, { key, account, credited }) {
    this.#panel = panel;
    this.#key = key;
    this.#account = account;
    this.#credited = credited;
  }

  /** Shows the tab: a payment that was in progress when the page was left, or that of the plan that the user came to buy. */
  async start() {
    this.#leave();
    if (!may("pay")) {
      this.#panel.replaceChildren(h("div", { class: "card", "data-withheld": "pay" }, h("h2", {}, "Buy credits"), h("p", { class: "soft" }, whyNot("pay"))));
      return;
    }
    const [sent, quote] = [rememberedPayment(), rememberedQuote()];
    this.#panel.replaceChildren(h("p", { class: "soft", role: "status" }, "Loading plans …"));
    try {
      const [plans, offers] = await Promise.all([callApi("/credits/plans"), callApi("/credits/offers")]);
      [this.#groups, this.#offers, this.#cards] = [byChain(plans), offers, plans.cards ?? []];
      if (this.#ended) return;
      const wanted = this.#wanted();
      if (rememberedSigned()) this.#sign();
      else if (sent) this.#resume(sent);
      else if (quote?.org_id === this.#account.org_id) await this.#reopen(quote.quote_id, wanted);
      else await this.#buy(wanted);
      // Only once: a payment in progress comes first, and later the user chooses again.
      forgetPlan();
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
    this.#view.abort();
  }

  get #ended() {
    return this.#end.signal.aborted;
  }

  /** Ends what is shown. Returns the signal that ends the next view. */
  #leave() {
    this.#view.abort();
    this.#view = new AbortController();
    if (this.#ended) this.#view.abort();
    return this.#view.signal;
  }

  #choose(problem, unsigned) {
    const signal = this.#leave();
    const bySignature = this.#bySignature(unsigned, signal);
    const byCard = this.#cards.length > 0 && h("div", { class: "panel-parts" }, cardForm(this.#cards, () => this.#key), autoTopUp(this.#cards, () => this.#key));
    if (this.#groups.length === 0 && !bySignature && !byCard) {
      this.#panel.replaceChildren(h("div", { class: "card centred" }, h("h2", {}, "No plans on sale"), h("p", { class: "soft" }, "There is nothing to buy at the moment.")));
      return;
    }
    const failure = problem && h("div", { class: "notice notice-bad", role: "alert", tabindex: "-1" }, problem);
    const plans = this.#groups.length > 0;
    const parts = [byCard, plans && h("div", { class: "split" }, this.#planForm(failure), howItWorks()), bySignature, plans && this.#byHash()];
    this.#panel.replaceChildren(...parts.filter(Boolean));
    this.#panel.querySelector("form > .notice")?.focus();
  }

  /** The form for payments by signature, if there are offers. */
  #bySignature(problem, signal) {
    if (rememberedSigned()) return pendingNotice(() => this.#sign());
    if (this.#offers.offers.length === 0) return null;
    return offersForm(this.#offers, { signal, problem, pay: (offer) => this.#sign(offer) });
  }

  /** Pays an offer by signature, or continues with an earlier signed payment. */
  #sign(offer = null) {
    if (!offer && !rememberedSigned()) {
      this.start();
      return;
    }
    const [offers, account, signal] = [this.#offers, this.#account, this.#leave()];
    const coin = coinOf(this.#groups.find(({ chain }) => chain.chain_id === offer?.chain_id)?.plans ?? []);
    const done = ({ credited: added, balance, transaction, receipt_number: receipt }) => {
      const explorer = offers.chains.find(({ chain_id: id }) => id === transaction?.chain)?.explorer_url;
      const hash = transaction?.hash;
      this.#done({ already_credited: false, amount_added: added, credit_balance: balance, tx_hash: hash, url: explorer && `${explorer}/tx/${hash}`, receipt });
    };
    showSigned(this.#panel, { offer, offers, coin, account, key: () => this.#key, signal, done, back: (problem) => this.#choose(undefined, problem) });
  }

  #planForm(failure) {
    const button = h("button", { class: "button", type: "submit", "data-action": "continue" }, "Continue");
    const label = () => {
      this.#chosen = form.elements.plan.value;
      const { plan, chain } = this.#plan(this.#chosen);
      button.textContent = `Continue with ${plan.label || plan.id} for ${price(plan)} on ${chain.name}`;
    };
    const form = h("form", { class: "plan-form", method: "post", on: { change: label } }, h("h2", {}, "Choose a plan"), failure, ...this.#groups.map(choices), h("div", { class: "plan-next" }, button));
    const radios = [...form.querySelectorAll("input")];
    (radios.find((radio) => radio.value === this.#chosen) ?? radios[0]).checked = true;
    label();
    onSubmit(form, () => busy(button, () => this.#quote()));
    return form;
  }

  /** The plan that was chosen before signing in, if it is on sale. */
  #wanted() {
    const plan = rememberedPlan();
    return this.#groups.some(({ plans }) => plans.some((candidate) => planKey(candidate) === plan)) ? plan : null;
  }

  /** Opens the payment of a plan; without one, shows the plans. */
  async #buy(plan) {
    this.#chosen = plan ?? this.#chosen;
    if (plan) await this.#quote();
    else this.#choose();
  }

  /** Gets a quote for the chosen plan, and shows it. */
  async #quote() {
    const { plan } = this.#plan(this.#chosen);
    const signal = this.#view.signal;
    try {
      const body = { plan_id: plan.id, chain_id: plan.chain_id };
      const quote = await callApi("/credits/topup/quote", { method: "POST", key: this.#key, body });
      if (signal.aborted) return;
      rememberQuote({ org_id: this.#account.org_id, quote_id: quote.quote_id });
      this.#purchase(quote);
    } catch (error) {
      if (!signal.aborted) this.#choose(sentence(error));
    }
  }

  /** Shows the quote that was on the page before a reload, unless it is unpaid and another plan is wanted. */
  async #reopen(id, wanted) {
    let quote;
    try {
      quote = await look(id, this.#key);
    } catch (error) {
      if (error.status !== 404 && error.code !== "unsupported_chain") throw error;
      forgetQuote();
    }
    if (this.#ended) return;
    const isOther = wanted && quote?.status === "open" && planKey({ chain_id: quote.chain_id, id: quote.plan_id }) !== wanted;
    if (quote && !isOther) this.#purchase(quote);
    else await this.#buy(wanted);
  }

  /** Shows a quote until it is paid. */
  #purchase(document, { sent = null, problem } = {}) {
    this.#chosen = planKey({ chain_id: document.chain_id, id: document.plan_id });
    const known = this.#groups.find(({ chain }) => chain.chain_id === document.chain_id);
    const chain = known?.chain ?? { chain_id: document.chain_id, name: `chain ${document.chain_id}`, explorer_url: "" };
    const coin = coinOf(known?.plans ?? []);
    const quote = named(document, coin);
    const again = () => {
      forgetQuote();
      this.#choose();
    };
    showPurchase(this.#panel, {
      quote,
      plan: known?.plans.find(({ id }) => id === quote.plan_id),
      chain,
      coin,
      credits: sumOf(quote),
      account: this.#account,
      key: () => this.#key,
      sent,
      problem,
      signal: this.#leave(),
      paid: (last) => this.#paid(last),
      renew: () => (known?.plans.some(({ id }) => id === quote.plan_id) ? this.#quote() : again()),
      back: again,
      lost: (words) => this.#resume(rememberedPayment(), words),
      refused: (error) => this.#resume(withoutQuote(rememberedPayment()), sentence(error.body.hint ? new Error(error.body.hint) : error)),
      forget: (payment) => this.#forget(payment),
      failed: (error) => this.#fail(error, [this.#button("Try again", () => this.start())]),
    });
  }

  /** The form for payments that were made without a quote. */
  #byHash() {
    const options = this.#groups.flatMap(({ chain, plans }) =>
      plans.map((plan) => h("option", { value: planKey(plan) }, `${plan.label || plan.id}: ${price(plan)} on ${chain.name}`)),
    );
    const select = h("select", { id: "paid-plan" }, ...options);
    const form = this.#hashForm("paid-hash", [h("div", { class: "field" }, h("label", { for: "paid-plan" }, "Plan"), select)], [], (hash) => {
      const { plan } = this.#plan(select.value);
      const sent = { org_id: this.#account.org_id, plan_id: plan.id, chain_id: plan.chain_id, label: plan.label || plan.id, from: null, stage: "sent", tx_hash: hash };
      rememberPayment(sent);
      this.#register(sent);
    });
    form.querySelector('[type="submit"]').classList.add("button-quiet");
    form.classList.add("fields-in-a-row");
    return h("section", { class: "card top-up-more" }, h("h2", {}, "Already paid?"), h("p", { class: "soft" }, "A payment with the exact amount of a quote is credited automatically. Register any other by its transaction hash. You sign with the wallet that paid, unless it is already linked to this account."), form);
  }

  /** A form that asks for a transaction's hash. */
  #hashForm(id, fields, buttons, submitted) {
    const input = h("input", { id, class: "mono", type: "text", autocomplete: "off", spellcheck: "false", placeholder: "0x…", "aria-describedby": `${id}-error` });
    const wrong = h("p", { class: "field-error", id: `${id}-error`, role: "alert", hidden: true });
    const form = h(
      "form",
      { method: "post" },
      ...fields,
      h("div", { class: "field" }, h("label", { for: id }, "Transaction hash"), input, wrong),
      h("div", { class: "actions" }, h("button", { class: "button", type: "submit" }, "Register payment"), ...buttons),
    );
    onSubmit(form, () => {
      const hash = input.value.trim();
      wrong.hidden = TX_HASH.test(hash);
      wrong.textContent = wrong.hidden ? "" : "A transaction hash is 0x and 64 hexadecimal digits.";
      if (wrong.hidden) submitted(hash.toLowerCase());
    });
    return form;
  }

  #plan(value) {
    for (const { chain, plans } of this.#groups) {
      const plan = plans.find((candidate) => planKey(candidate) === value);
      if (plan) return { plan, chain };
    }
    throw new Error("This plan is no longer on sale.");
  }

  /** Resumes a remembered payment. */
  async #resume(sent, problem) {
    if (sent.org_id !== this.#account.org_id) {
      this.#fail(`A payment for account ${sent.org_id} has not been registered. Sign in to that account to register it.`, [this.#forget(sent)]);
    } else if (sent.stage !== "sent") {
      this.#uncertain(sent, problem);
    } else if (problem) {
      this.#fail(problem, [this.#button("Try again", () => this.#resume(sent)), this.#forget(sent)], sent);
    } else if (sent.quote_id) {
      const signal = this.#leave();
      try {
        const quote = await look(sent.quote_id, this.#key);
        if (!signal.aborted) this.#purchase(quote, { sent });
      } catch {
        // The hash is enough.
        if (!signal.aborted) this.#register(sent);
      }
    } else {
      this.#register(sent);
    }
  }

  /** The wallet was asked to pay, and whether it did is unknown. If it did, the payment is detected automatically. */
  #uncertain(sent, problem) {
    const signal = this.#leave();
    const form = this.#hashForm("lost-hash", [], [this.#button("Nothing was sent: start again", () => this.#startOver())], (hash) => {
      const known = { ...sent, stage: "sent", tx_hash: hash };
      rememberPayment(known);
      this.#resume(known);
    });
    this.#panel.replaceChildren(
      h(
        "div",
        { class: "card", id: "uncertain-payment" },
        h("h2", {}, "Was the payment sent?"),
        problem && h("div", { class: "notice notice-warn", role: "alert" }, problem),
        h("p", {}, `Your wallet was asked to pay for the plan ${sent.label} but did not report whether it did. Check the wallet's activity. If the payment is there, wait: it is detected automatically. You can also enter its hash; it will not be sent again.`),
        form,
      ),
    );
    if (!sent.quote_id) return;
    const show = (quote) => {
      if (quote && quote.status !== "open") this.#purchase(quote, { sent: { ...sent, tx_hash: quote.tx_hash } });
    };
    // If a quote cannot be read, the form stays.
    follow(sent.quote_id, { key: () => this.#key, show, signal }).catch(() => {});
  }

  /** Registers a payment by its hash. */
  async #register(sent) {
    const signal = this.#leave();
    let waiting = true;
    const stop = this.#button("Stop waiting", () => {
      waiting = false;
      this.#resume(sent, "The payment is not registered yet. Nothing is lost: you can register it once it is confirmed.");
    });
    const steps = stepList({ send: "The payment was sent.", confirm: "Wait until it is confirmed.", credit: "You get the credits and a receipt." });
    const heading = h("h2", { tabindex: "-1" }, `Payment for ${sent.label}`);
    this.#panel.replaceChildren(h("div", { class: "card", id: "payment-progress" }, heading, steps.element, h("div", { class: "actions" }, stop)));
    const explorer = this.#groups.find(({ chain }) => chain.chain_id === sent.chain_id)?.chain.explorer_url;
    steps.say("send", "done", transaction(sent.tx_hash, explorer && `${explorer}/tx/${sent.tx_hash}`));
    try {
      const response = await register(sent, this.#key, steps.say, () => waiting && !signal.aborted);
      if (!signal.aborted) this.#done(response);
    } catch (error) {
      const unproven = error.code === "payer_proof_required";
      if (waiting && !signal.aborted) this.#resume(sent, sentence(unproven ? new Error(error.body.hint) : error));
    }
  }

  /** A quote was paid. */
  async #paid(quote) {
    const signal = this.#leave();
    // Another transaction than the wallet's may have paid the quote. The wallet's is then registered by its hash.
    const sent = rememberedPayment();
    const isOfQuote = sent?.quote_id === quote.quote_id;
    if (isOfQuote && sent.tx_hash && sent.tx_hash !== quote.tx_hash) withoutQuote(sent);
    else if (isOfQuote || sent?.tx_hash === quote.tx_hash) forgetPayment();
    let balance = null;
    try {
      balance = (await callApi("/credits/balance", { key: this.#key })).credit_balance;
    } catch {
      // The page shows it elsewhere, too.
    }
    if (signal.aborted) return;
    forgetQuote();
    const { tx_hash, explorer_url: url, receipt_number: receipt } = quote;
    this.#done({ already_credited: false, amount_added: sumOf(quote), credit_balance: balance, tx_hash, url, receipt });
    const removed = await untilReversed(quote.quote_id, () => this.#key, signal);
    if (!removed) return;
    rememberQuote({ org_id: this.#account.org_id, quote_id: quote.quote_id });
    this.#purchase(removed);
    this.#credited();
  }

  #done(topUp) {
    this.#panel.replaceChildren(toppedUp(topUp, this.#button(rememberedPayment() ? "Register your other payment" : "Top up again", () => this.start())));
    this.#panel.querySelector("h2").focus();
    this.#credited();
  }

  #fail(problem, actions, sent) {
    this.#leave();
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
