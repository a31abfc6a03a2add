// The page of one quote: what to send and how, the steps ahead, and waiting for the payment.

import { sentence } from "/assets/api.js";
import { group, plural } from "/assets/decimal.js";
import { busy, h, halves } from "/assets/dom.js";
import { OVERDUE_MS, follow, pay } from "/assets/payment.js";
import { qrCode } from "/assets/qr.js";
import { copyButton } from "/assets/secret.js";
import { rememberedPayment } from "/assets/session.js";
import { connected, stepList, transaction } from "/assets/steps.js";
import { choose, onWallets, wallet, wallets } from "/assets/wallet.js";

const TICK_MS = 1_000;

/**
 * Fills `place` until `signal` is aborted. `sent` is the payment that a wallet in this browser sent, if it did; `problem`
 * is shown first. Calls `paid` with the quote, `renew` when a new amount is wanted, `back` for the plans, `lost` when the
 * wallet did not say whether it paid, `refused` when the payment that it sent cannot be credited, and `failed` when the
 * quote can no longer be shown. `forget` makes the button that forgets a payment.
 */
export function showPurchase(place, { quote, plan, chain, coin, credits, account, key, sent, problem, signal, paid, renew, back, lost, refused, failed, forget }) {
  const label = plan?.label || quote.plan_id;
  const exact = `${group(quote.amount_human)} ${quote.token_symbol}`;
  const sum = `${group(credits)} ${plural(credits, "credit")}`;
  const hasWallet = wallets().length > 0;
  const toSend = (opening) => [opening, h("strong", {}, exact), " to ", h("span", { class: "mono break" }, halves(quote.recipient)), ` on ${chain.name}, once.`];
  const asked = toSend(hasWallet || sent ? "It asks you to send exactly " : "You send exactly ");
  const planned = {
    ...(hasWallet || sent ? { wallet: "Your wallet shares its address with this page. Nothing to sign." } : {}),
    send: asked,
    confirm: `Wait for ${quote.required} ${plural(quote.required, "confirmation")}.`,
    credit: `You get ${sum} and a receipt.`,
  };
  // Unless this page's wallet paid, whose address is known.
  const elsewhere = "The payment was sent from elsewhere.";
  const steps = stepList(planned, {
    wallet: elsewhere,
    confirm: `Confirmed: ${quote.required} of ${quote.required} confirmations.`,
    credit: `You got ${sum} and a receipt.`,
  });
  const heading = h("h2", { tabindex: "-1", id: "purchase-title" });
  const reason = h("p", { class: "hint", id: "why-exact" }, "This is not a round amount because its last digits identify your payment. Pay exactly this amount.");
  const preview = h("h3", {}, "What happens");
  const without = !hasWallet && !sent && h("p", { class: "hint", "data-needs": "wallet" }, "There is no wallet in this browser. Pay from a phone or any other wallet.");
  const left = h("span", { id: "time-left", role: "timer" });
  const alert = h("div", { class: "notice notice-bad", role: "alert", tabindex: "-1", hidden: !problem }, problem);
  const expired = h(
    "div",
    { class: "notice notice-warn", id: "quote-expired", role: "status", hidden: true },
    h("p", {}, h("strong", {}, "This amount has expired. "), "Get a new one before you pay. If you have sent it already, leave this page open: it is still credited for a day."),
    h("div", { class: "actions" }, h("button", { class: "button", type: "button", "data-action": "renew", on: { click: renew } }, "Get a new amount")),
  );
  const reversal = h(
    "div",
    { class: "notice notice-warn", id: "payment-reversed", role: "alert", hidden: true },
    h("p", {}, h("strong", {}, "A reorganisation of the chain removed the payment, "), "and its credits were taken back. They return if it is mined again. Pay again only if your wallet shows that it failed or was replaced."),
  );
  const chooser = h("div", {});
  const payButton = h("button", { class: "button wide-button", type: "button", "data-action": "pay" });
  const stop = h("button", { class: "button button-quiet", type: "button", hidden: true }, "Stop waiting for the wallet");
  const abandon = h("span", { hidden: true });
  const other = otherWallet(quote, chain, exact);
  const change = h("button", { class: "button button-quiet", type: "button", "data-action": "back", on: { click: back } }, "Choose another plan");

  let isSent = Boolean(sent);
  let hasArrived = false;
  let wasSeen = false;
  let isReversed = false;
  let isOver = false;
  let isAsked = false;
  let isOverdue = false;
  const arrange = () => {
    const canPay = !isSent && !hasArrived && !isOver;
    payButton.hidden = !canPay || wallets().length === 0;
    chooser.hidden = payButton.hidden || isAsked;
    abandon.hidden = !isOverdue || hasArrived;
    // A user who has paid, or is about to, must not pay again.
    other.hidden = !canPay || isAsked;
    change.hidden = isSent || hasArrived || isAsked;
    expired.hidden = !isOver || isSent || hasArrived;
    left.hidden = isSent || hasArrived || isOver;
    reversal.hidden = !isReversed;
    showState(hasArrived ? "seen" : isSent ? "sent" : "open");
    const chosen = wallet();
    payButton.textContent = chosen ? `Pay with ${chosen.name === "Browser wallet" ? "your browser wallet" : chosen.name}` : "";
  };
  /** Words the card for a payment that is `open`, `sent` or `seen`: only an open one asks for anything. */
  const showState = (state) => {
    if (whole.dataset.state === state) return;
    whole.dataset.state = state;
    const isOpen = state === "open";
    heading.textContent = { open: `Pay ${exact}`, sent: "Payment sent", seen: "Payment seen" }[state];
    for (const part of [reason, preview]) part.hidden = !isOpen;
    if (without) without.hidden = !isOpen;
    const done = { sent: "Your wallet sent ", seen: "Your payment is on the chain: " }[state];
    steps.word("send", isOpen ? asked : [done, h("strong", {}, exact), ` on ${chain.name}.`]);
  };
  const offer = () => {
    chooser.replaceChildren(...walletChoice(arrange));
    arrange();
  };

  payButton.addEventListener("click", () =>
    busy(payButton, async () => {
      const waiting = new AbortController();
      signal.addEventListener("abort", () => waiting.abort());
      // The second half of a double click on the previous button must not trigger it.
      stop.onclick = ({ detail }) => detail > 1 || waiting.abort();
      stop.hidden = false;
      alert.hidden = true;
      isAsked = true;
      arrange();
      try {
        const payment = await pay({ quote, chain, account, coin, label }, steps.say, waiting.signal);
        if (signal.aborted) return;
        isSent = true;
        showSent(payment);
      } catch (error) {
        if (signal.aborted) return;
        if (rememberedPayment()) {
          lost(sentence(error));
          return;
        }
        steps.say("wallet", "", "", elsewhere);
        steps.say("send", "", "");
        alert.textContent = sentence(error);
        alert.hidden = false;
        alert.focus();
      } finally {
        isAsked = false;
        stop.hidden = true;
        arrange();
      }
    }),
  );

  function showSent(payment) {
    const { from, tx_hash: hash } = payment;
    // A payment that failed or was dropped never arrives.
    const overdue = setTimeout(() => {
      isOverdue = true;
      arrange();
    }, OVERDUE_MS);
    signal.addEventListener("abort", () => clearTimeout(overdue));
    abandon.replaceChildren(forget(payment));
    steps.say("wallet", "done", undefined, from ? connected(from) : undefined);
    steps.say("send", "done", ["Sent: ", transaction(hash, chain.explorer_url && `${chain.explorer_url}/tx/${hash}`)]);
    steps.say("confirm", "now", "Waiting for the payment to be in a block.");
  }

  /** No payment is in a block: not yet, or no longer, because payments and blocks can be replaced. */
  function showWaiting(seen) {
    hasArrived = false;
    arrange();
    if (isReversed) {
      steps.say("send", "done", ["Removed from the chain: ", transaction(seen.tx_hash, seen.explorer_url)]);
      steps.say("confirm", "now", "Waiting for the payment to be in a block again.");
    } else if (wasSeen) {
      if (!isSent) for (const step of ["wallet", "send"]) steps.say(step, "", "");
      steps.say("confirm", "now", "The payment is no longer in a block. Waiting for it to be in one again. Pay again only if your wallet shows that it failed or was replaced.");
    } else if (!isSent) {
      steps.say("confirm", "", "Waiting for the payment. It is detected automatically.");
    }
    if (isReversed || wasSeen) steps.say("credit", "");
  }

  function showLook(seen, error) {
    if (error) {
      steps.say("confirm", hasArrived || isSent ? "now" : "", `${sentence(error)} Trying again.`);
      return;
    }
    isReversed = seen.status === "reversed";
    if (isReversed || seen.status === "open") {
      showWaiting(seen);
      return;
    }
    [hasArrived, wasSeen] = [true, true];
    arrange();
    steps.say("wallet", "done");
    steps.say("send", "done", ["Seen: ", transaction(seen.tx_hash, seen.explorer_url)]);
    const isPaid = seen.status === "paid";
    const isConfirmed = isPaid || BigInt(seen.confirmations) >= BigInt(seen.required);
    steps.say("confirm", isConfirmed ? "done" : "now", isConfirmed ? "" : `${seen.confirmations} of ${seen.required} confirmations.`);
    steps.say("credit", isPaid ? "done" : isConfirmed ? "now" : "");
  }

  const skew = quote.date.getTime() - Date.now();
  const tick = () => {
    const seconds = Math.floor((Date.parse(quote.expires_at) - (Date.now() + skew)) / 1_000);
    left.textContent = seconds >= 0 ? `Price held for ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}.` : "";
    if (seconds < 0 !== isOver) {
      isOver = seconds < 0;
      arrange();
    }
  };
  const timer = setInterval(tick, TICK_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
  onWallets(offer, signal);

  const main = h(
    "section",
    { class: "card", id: "payment-progress", "aria-labelledby": "purchase-title" },
    heading,
    reason,
    h("p", { class: "soft" }, `${label}: ${sum}, on ${chain.name}. `, left),
    alert,
    reversal,
    expired,
    chooser,
    payButton,
    preview,
    steps.element,
    without,
    h("div", { class: "actions" }, stop, change, abandon),
  );
  const whole = h("div", { class: "split purchase", id: "purchase" }, main, other);
  place.replaceChildren(whole);
  offer();
  tick();
  if (sent) showSent(sent);
  // After a reload, the page never asks again for a payment that was seen, not even for a moment.
  if (quote.status !== undefined && quote.status !== "open") showLook(quote, null);
  (problem ? alert : heading).focus();

  follow(quote.quote_id, { key, show: showLook, sent: () => rememberedPayment(), signal }).then(
    (last) => last && paid(last),
    (error) => {
      if (!signal.aborted) (error.isRefusal ? refused : failed)(error);
    },
  );
}

/** Radio buttons for the wallets of this browser, if there are several. */
export function walletChoice(chosen) {
  if (wallets().length < 2) return [];
  const radio = (option) => {
    const input = h("input", { type: "radio", name: "wallet", value: option.id, on: { change: () => (choose(option), chosen()) } });
    input.checked = option === wallet();
    const icon = option.icon && h("img", { src: option.icon, alt: "", width: 24, height: 24 });
    return h("label", { class: "wallet-choice" }, input, icon, h("span", {}, option.name));
  };
  return [h("fieldset", { class: "wallets" }, h("legend", {}, "Wallet"), ...wallets().map(radio))];
}

/** For a wallet on another device: the code to scan, and the same data as text to copy. */
function otherWallet(quote, chain, exact) {
  const line = (name, value, copy) => h("div", {}, h("dt", {}, name), h("dd", {}, h("span", { class: "mono break" }, value), copy && copyButton(copy, "Copy", "button button-quiet button-small", name.toLowerCase())));
  const native = quote.payment_kind === "native_value";
  const decimals = quote.amount_human.split(".")[1]?.length ?? 0;
  return h(
    "section",
    { class: "card", id: "other-wallet", "aria-labelledby": "other-wallet-title" },
    h("h2", { id: "other-wallet-title" }, "From a phone or another wallet"),
    h("p", { class: "soft" }, "Scan this with your wallet, or copy the amount and the address. ", h("strong", {}, "The exact amount identifies your payment"), ", down to its last digit, so any wallet will do and there is nothing to register."),
    h("a", { class: "button wide-button open-wallet", href: quote.payment_uri, "data-action": "open-wallet" }, "Open in a wallet app"),
    h("a", { class: "qr-frame", href: quote.payment_uri, "aria-label": "Open in a wallet on this device" }, qrCode(quote.payment_uri, `Payment request for ${exact}`)),
    h(
      "dl",
      { class: "facts pay-facts" },
      line("Amount", exact, quote.amount_human),
      line("To", halves(quote.recipient), quote.recipient),
      line("Network", chain.name),
    ),
    h(
      "details",
      { class: "more" },
      h("summary", {}, "Technical details"),
      h("dl", { class: "facts pay-facts" }, line("Chain id", quote.chain_id, quote.chain_id), !native && line("Token contract", halves(quote.token_contract), quote.token_contract)),
    ),
    h(
      "p",
      { class: "hint" },
      native
        ? `Send it once, in a plain transfer from a wallet whose key you hold. ${quote.token_symbol} that a smart contract or an exchange's contract sends cannot be credited.`
        : "Send it once, in a plain transfer.",
      ` Exactly this amount must arrive. If your exchange deducts its fee from the amount, or rounds it to fewer than ${decimals} decimals, use another wallet.`,
    ),
  );
}

/** What to expect, beside the plans. */
export function howItWorks() {
  const step = (...words) => h("li", {}, h("span", {}, ...words));
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "How paying works"),
    h(
      "ol",
      { class: "progress numbered" },
      step("You get an exact amount: the price and a tag of at most a hundredth of a token, which identifies your payment."),
      step("You send it once, from a wallet in this browser, on a phone, or anywhere else. There is nothing to sign or to approve."),
      step("This page counts the confirmations. Then you get the credits and a receipt."),
    ),
  );
}
