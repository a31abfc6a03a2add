// A payment from the wallet to the account: sent at most once, remembered until it is registered.

import { ApiError, ask } from "/assets/api.js";
import { wait } from "/assets/dom.js";
import { rememberPayment, rememberedPayment, replacePayment } from "/assets/session.js";
import { WalletError, checkAccount, checkFunds, connect, payment, request, sign, switchChain } from "/assets/wallet.js";

export const TX_HASH = /^0x[0-9a-fA-F]{64}$/;
/** Registering waits for confirmations on the server, for longer than other requests do. */
const REGISTER_TIMEOUT_MS = 150_000;
const RETRY_MS = 3_000;

/**
 * Pays a plan. `say(step, state, detail)` is told how far it is, `signal` ends the waiting for the wallet. The result is the
 * remembered payment.
 */
export async function pay({ plan, chain, account, coin }, say, signal) {
  if (rememberedPayment()) throw new WalletError("Another payment is under way in this tab.");
  say("wallet", "now", "Choose an account in your wallet.");
  const from = await connect(signal);
  say("wallet", "done", from);
  say("network", "now", `Your wallet may ask to change to ${chain.name}.`);
  await switchChain(chain, coin, signal);
  say("network", "done", chain.name);
  say("send", "now", "Confirm the payment in your wallet.");
  await checkAccount(plan, from, signal);
  await checkFunds(plan, from, signal);
  const about = { org_id: account.org_id, plan_id: plan.id, chain_id: plan.chain_id, label: plan.label || plan.id, from };
  // Before it is sent: if this page goes away now, nobody may send it again without a look at the wallet.
  const sending = { ...about, stage: "sending" };
  rememberPayment(sending);
  let hash;
  try {
    hash = await request("eth_sendTransaction", [payment(plan, from)], signal);
    if (!TX_HASH.test(hash)) throw new WalletError("Your wallet did not say which transaction it sent.", "unknown");
  } catch (error) {
    if (error.sent === "no") replacePayment(sending);
    throw error;
  }
  const sent = { ...about, stage: "sent", tx_hash: hash.toLowerCase() };
  replacePayment(sending, sent);
  return sent;
}

/** Registers a payment, for as long as that may still work. The result is the service's answer. */
export async function register(sent, key, say, going = () => true) {
  let signature;
  for (;;) {
    say("register", "now", "Waiting for the payment to be confirmed. You can leave this page open, or reload it.");
    try {
      const { plan_id, chain_id, tx_hash } = sent;
      const body = { plan_id, chain_id, tx_hash, ...(signature && { signature }) };
      const answer = await ask("/credits/topup", { method: "POST", key, body, timeout: REGISTER_TIMEOUT_MS });
      replacePayment(sent);
      return answer;
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

/** The payer's signature: that the payment is for this account. */
async function prove(sent, { message }, say) {
  say("register", "now", "Sign the message in your wallet: it shows that the payment is yours, and moves no money.");
  const account = await connect();
  return sign(message, sent.from ?? account);
}

function standing(error) {
  const { confirmations, required } = error.body;
  if (error.code === "payment_unconfirmed" && required !== undefined) return `${confirmations} of ${required} confirmations.`;
  if (error.code === "tx_not_found") return "The network does not show the transaction yet.";
  return error.message;
}
