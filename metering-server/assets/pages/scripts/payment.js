// Pays a quote from the wallet, waits for payments, and registers those that were made elsewhere. A payment is sent at
// most once, and remembered until it is credited.

import { ApiError, callApi } from "/assets/api.js";
import { wait } from "/assets/dom.js";
import { rememberPayment, rememberedPayment, replacePayment } from "/assets/session.js";
import { connected } from "/assets/steps.js";
import { WalletError, checkAccount, checkFunds, connect, holdWallet, payment, request, sign, switchChain } from "/assets/wallet.js";

export const TX_HASH = /^0x[0-9a-fA-F]{64}$/;
/** Registering takes longer than other requests: the server waits for confirmations. */
export const REGISTER_TIMEOUT_MS = 150_000;
export const RETRY_MS = 3_000;
/**
 * How long to wait between two checks of a quote: while its payment is being confirmed, the maximum otherwise, and once
 * it has expired.
 */
const LOOK_MS = 2_000;
const LONGEST_LOOK_MS = 12_000;
const EXPIRED_LOOK_MS = 60_000;
/** How long to check a quote after it was paid: most chains are final by then. */
const PAID_WATCH_MS = 20 * 60_000;
/** A sent payment that no check has found for this long is registered by its hash, and may be forgotten. */
export const OVERDUE_MS = 45_000;

/**
 * Pays a quote. Reports progress to `say(step, state, detail, happened)`; `signal` ends the wait for the wallet. Returns the
 * remembered payment.
 */
export const pay = (purchase, say, signal) => holdWallet(() => payWith(purchase, say, signal));

async function payWith({ quote, chain, account, coin, label }, say, signal) {
  if (rememberedPayment()) throw new WalletError("Another payment is in progress in this tab.");
  say("wallet", "now", "Choose an account in your wallet.");
  const from = await connect(signal);
  say("wallet", "now", `Your wallet may ask to switch to ${chain.name}.`);
  await switchChain(chain, coin, signal);
  const isContract = await checkAccount(quote, from, signal);
  await checkFunds(quote, from, signal);
  say("wallet", "done", isContract ? "It is a smart contract: the exact amount identifies its payment." : "", connected(from));
  say("send", "now", "Confirm the payment in your wallet.");
  const about = { org_id: account.org_id, plan_id: quote.plan_id, chain_id: quote.chain_id, label, from, quote_id: quote.quote_id };
  // Remember it before it is sent: if this page goes away now, the payment must not be repeated without checking the
  // wallet.
  const sending = { ...about, stage: "sending" };
  rememberPayment(sending);
  let hash;
  try {
    hash = await request("eth_sendTransaction", [payment(quote, from)], signal);
    if (!TX_HASH.test(hash)) throw new WalletError("Your wallet did not return a transaction hash.", "unknown");
  } catch (error) {
    if (error.sent === "no") replacePayment(sending);
    throw error;
  }
  const sent = { ...about, stage: "sent", tx_hash: hash.toLowerCase() };
  replacePayment(sending, sent);
  return sent;
}

/** The service's state of a quote. */
export const look = (id, key) => callApi(`/credits/topup/quote?quote_id=${encodeURIComponent(id)}`, { key });

/**
 * Checks a paid quote now and then, while a reorganisation may still remove its payment. Returns the quote if that
 * happened; otherwise `null`, at the end or when `signal` is aborted.
 */
export async function untilReversed(id, key, signal) {
  const started = Date.now();
  while (Date.now() - started < PAID_WATCH_MS) {
    await wait(LONGEST_LOOK_MS, signal);
    if (signal.aborted) return null;
    try {
      const quote = await look(id, key());
      if (signal.aborted) return null;
      if (quote.status !== "paid") return quote;
    } catch {
      // Nothing waits for this check. The next one may succeed.
    }
  }
  return null;
}

/**
 * Checks a quote until it is paid or `signal` is aborted, and returns it. `show` gets the result of every check, or its
 * error; `sent` returns the payment that the wallet sent, if it did. Throws when a check is refused, or the payment
 * that was sent cannot be credited (`isRefusal`). Returns `null` once a payment would no longer be honoured.
 */
export async function follow(id, { key, show, sent = () => null, signal }) {
  let pause = LOOK_MS;
  let tried = 0;
  const started = Date.now();
  for (;;) {
    try {
      const quote = await look(id, key());
      if (signal.aborted) return null;
      show(quote, null);
      if (quote.status === "paid") return quote;
      const isOpen = quote.status === "open";
      const isWaiting = isOpen || quote.status === "reversed";
      const isOverdue = isOpen && sent()?.tx_hash && Date.now() - started > OVERDUE_MS;
      if (isOverdue && Date.now() - tried > OVERDUE_MS) {
        tried = Date.now();
        await credit(quote, sent().tx_hash, key());
        continue;
      }
      const now = quote.date.getTime();
      if (isOpen && !sent() && now > Date.parse(quote.honoured_until)) return null;
      if (!isWaiting || sent()) pause = LOOK_MS;
      else pause = now > Date.parse(quote.expires_at) ? EXPIRED_LOOK_MS : Math.min(pause * 1.2, LONGEST_LOOK_MS);
    } catch (error) {
      if (signal.aborted) return null;
      if (!(error instanceof ApiError) || error.isRefusal || error.status === 401 || error.status === 404) throw error;
      show(null, error);
      pause = Math.max(LONGEST_LOOK_MS, (error.retryAfter ?? 0) * 1_000);
    }
    await wait(pause, signal);
    if (signal.aborted) return null;
  }
}

/** Registers a payment that the wallet sent and no check has found: it failed, was dropped, or is late. */
async function credit({ plan_id, chain_id }, tx_hash, key) {
  try {
    await callApi("/credits/topup", { method: "POST", key, body: { plan_id, chain_id, tx_hash }, timeout: REGISTER_TIMEOUT_MS });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // Otherwise a later check finds it.
    if (!isPassing(error) && error.status < 500) throw Object.assign(error, { isRefusal: true });
  }
}

/** Whether the same request may succeed later. */
export const isPassing = (error) => error.retryAfter !== undefined || error.code === "network" || error.code === "timeout";

/** Registers a payment, and retries for as long as a retry may succeed. Returns the service's response. */
export async function register(sent, key, say, going = () => true) {
  let signature;
  for (;;) {
    say("confirm", "now", "Waiting for confirmations. You can leave this page open or reload it.");
    try {
      const { plan_id, chain_id, tx_hash } = sent;
      const body = { plan_id, chain_id, tx_hash, ...(signature && { signature }) };
      const response = await callApi("/credits/topup", { method: "POST", key, body, timeout: REGISTER_TIMEOUT_MS });
      replacePayment(sent);
      return response;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === "payer_proof_required" && !signature) {
        signature = await prove(sent, error.body, say);
        continue;
      }
      if (!isPassing(error) || !going()) throw error;
      say("confirm", "now", progress(error));
      await wait(Math.max(RETRY_MS, (error.retryAfter ?? 0) * 1_000));
      if (!going()) throw error;
    }
  }
}

/** Gets the payer's signature confirming that the payment is for this account. */
async function prove(sent, { message }, say) {
  say("confirm", "now", "Sign the message in your wallet. It proves that the payment is yours and moves no money.");
  const account = await connect();
  return sign(message, sent.from ?? account);
}

/** The text shown while waiting for a payment. */
export function progress(error) {
  const { confirmations, required } = error.body;
  if (error.code === "payment_unconfirmed" && required !== undefined) return `${confirmations} of ${required} confirmations.`;
  if (error.code === "tx_not_found") return "The network does not know the transaction yet.";
  return error.message;
}
