// Pays from the wallet to the account. A payment is sent at most once, and remembered until it is registered.

import { ApiError, callApi } from "/assets/api.js";
import { wait } from "/assets/dom.js";
import { rememberPayment, rememberedPayment, replacePayment } from "/assets/session.js";
import { WalletError, checkAccount, checkFunds, connect, payment, request, sign, switchChain } from "/assets/wallet.js";

export const TX_HASH = /^0x[0-9a-fA-F]{64}$/;
/** Registering takes longer than other requests: the server waits for confirmations. */
const REGISTER_TIMEOUT_MS = 150_000;
const RETRY_MS = 3_000;

/**
 * Pays for a plan. Reports progress to `say(step, state, detail)`; `signal` ends the wait for the wallet. Returns the
 * remembered payment.
 */
export async function pay({ plan, chain, account, coin }, say, signal) {
  if (rememberedPayment()) throw new WalletError("Another payment is in progress in this tab.");
  say("wallet", "now", "Choose an account in your wallet.");
  const from = await connect(signal);
  say("wallet", "done", from);
  say("network", "now", `Your wallet may ask to switch to ${chain.name}.`);
  await switchChain(chain, coin, signal);
  say("network", "done", chain.name);
  say("send", "now", "Confirm the payment in your wallet.");
  await checkAccount(plan, from, signal);
  await checkFunds(plan, from, signal);
  const about = { org_id: account.org_id, plan_id: plan.id, chain_id: plan.chain_id, label: plan.label || plan.id, from };
  // Remember it before it is sent: if this page goes away now, the payment must not be repeated without checking the
  // wallet.
  const sending = { ...about, stage: "sending" };
  rememberPayment(sending);
  let hash;
  try {
    hash = await request("eth_sendTransaction", [payment(plan, from)], signal);
    if (!TX_HASH.test(hash)) throw new WalletError("Your wallet did not return a transaction hash.", "unknown");
  } catch (error) {
    if (error.sent === "no") replacePayment(sending);
    throw error;
  }
  const sent = { ...about, stage: "sent", tx_hash: hash.toLowerCase() };
  replacePayment(sending, sent);
  return sent;
}

/** Registers a payment, and retries for as long as a retry may succeed. Returns the service's response. */
export async function register(sent, key, say, going = () => true) {
  let signature;
  for (;;) {
    say("register", "now", "Waiting for confirmations. You can leave this page open or reload it.");
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
      const passing = error.retryAfter !== undefined || error.code === "network" || error.code === "timeout";
      if (!passing || !going()) throw error;
      say("register", "now", standing(error));
      await wait(Math.max(RETRY_MS, (error.retryAfter ?? 0) * 1_000));
      if (!going()) throw error;
    }
  }
}

/** Gets the payer's signature confirming that the payment is for this account. */
async function prove(sent, { message }, say) {
  say("register", "now", "Sign the message in your wallet. It proves that the payment is yours and moves no money.");
  const account = await connect();
  return sign(message, sent.from ?? account);
}

function standing(error) {
  const { confirmations, required } = error.body;
  if (error.code === "payment_unconfirmed" && required !== undefined) return `${confirmations} of ${required} confirmations.`;
  if (error.code === "tx_not_found") return "The network does not know the transaction yet.";
  return error.message;
}
