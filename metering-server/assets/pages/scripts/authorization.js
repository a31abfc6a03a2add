// Signed transfers of tokens (EIP-3009, in the form of x402): the wallet signs, the service sends the transaction and pays
// its gas. The signature is kept until its outcome is known, and is only ever resent unchanged: another signature would
// be another payment.

import { ApiError, callApi } from "/assets/api.js";
import { wait } from "/assets/dom.js";
import { forgetSigned, rememberSigned } from "/assets/session.js";
import { connected } from "/assets/steps.js";
import { WalletError, checkFunds, connect, holdWallet, request, switchChain } from "/assets/wallet.js";

/** Longer than the service waits for a block. */
const PAY_TIMEOUT_MS = 120_000;
const RETRY_MS = 3_000;
/** Signatures are valid from some time in the past, because the clocks of the chain and of the service differ. */
const EARLIER_SECONDS = 600;
const SIGNATURE = /^0x(?:[0-9a-fA-F]{2}){65,}$/;
/** With these errors it is certain that nothing was or will be taken, or that the payment was credited elsewhere. */
const OVER = ["payment_refused", "payment_required", "payment_credited", "validation_failed"];

const field = (name, type) => ({ name, type });
const TYPES = {
  EIP712Domain: [field("name", "string"), field("version", "string"), field("chainId", "uint256"), field("verifyingContract", "address")],
  TransferWithAuthorization: [field("from", "address"), field("to", "address"), field("value", "uint256"), field("validAfter", "uint256"), field("validBefore", "uint256"), field("nonce", "bytes32")],
};

/** The payment of an offer by `from`, to be signed now: `seconds` since 1970. */
function authorizationOf(offer, from, seconds) {
  const random = crypto.getRandomValues(new Uint8Array(32));
  return {
    from,
    to: offer.recipient,
    value: offer.amount_atomic,
    validAfter: String(seconds - EARLIER_SECONDS),
    validBefore: String(seconds + Number(offer.max_timeout_seconds)),
    nonce: `0x${Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("")}`,
  };
}

/** The typed data that the wallet signs (EIP-712). */
function typedData(offer, message) {
  const domain = { name: offer.token_name, version: offer.token_version, chainId: Number(offer.chain_id), verifyingContract: offer.token_contract };
  return { types: TYPES, primaryType: "TransferWithAuthorization", domain, message };
}

/** The value of the header `PAYMENT-SIGNATURE` (x402 version 2). */
function headerOf(offer, authorization, signature) {
  const accepted = {
    scheme: "exact",
    network: `eip155:${offer.chain_id}`,
    amount: offer.amount_atomic,
    asset: offer.token_contract,
    payTo: offer.recipient,
    maxTimeoutSeconds: Number(offer.max_timeout_seconds),
    extra: { name: offer.token_name, version: offer.token_version },
  };
  const bytes = new TextEncoder().encode(JSON.stringify({ x402Version: 2, accepted, payload: { authorization, signature } }));
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/**
 * Has the wallet sign the payment of an offer. Reports progress to `say(step, state, detail, happened)`; `signal` ends the
 * wait for the wallet. Returns the signed payment, already stored. If this fails, no one has a signature.
 */
export const signOffer = (purchase, say, signal) => holdWallet(() => signWith(purchase, say, signal));

async function signWith({ offer, chain, coin, account }, say, signal) {
  say("wallet", "now", "Choose an account in your wallet.");
  const from = await connect(signal);
  say("wallet", "now", `Your wallet may ask to switch to ${chain.name}.`);
  await switchChain(chain, coin, signal);
  await checkFunds({ ...offer, payment_kind: "erc20", amount_human: offer.token_amount }, from, signal);
  say("wallet", "done", "", connected(from));
  say("sign", "now", "Sign the payment in your wallet.");
  // The service's time counts, not that of this device.
  const { date } = await callApi("/credits/offers");
  const authorization = authorizationOf(offer, from, Math.floor(date.getTime() / 1_000));
  const signature = await request("eth_signTypedData_v4", [from, JSON.stringify(typedData(offer, authorization))], signal);
  if (!SIGNATURE.test(signature)) throw new WalletError("Your wallet did not return a signature. Nothing was taken.");
  const { chain_id, token_amount, token_symbol, credits } = offer;
  const signed = { org_id: account.org_id, header: headerOf(offer, authorization, signature), from, chain_id, token_amount, token_symbol, credits };
  // Remember it before it is sent: a reload must not lead to another payment.
  rememberSigned(signed);
  say("sign", "done", "");
  return signed;
}

/**
 * Sends the signed payment until it is credited, and returns the service's response; `null` once `signal` is aborted.
 * Throws when the payment can no longer succeed (and forgets it), or when the service does not accept it now.
 */
export async function settle(signed, { key, say, signal }) {
  say("settle", "now", "The service sends the payment, and waits for a block.");
  for (;;) {
    try {
      const headers = { "PAYMENT-SIGNATURE": signed.header };
      const response = await callApi("/credits/pay", { method: "POST", key: key(), headers, timeout: PAY_TIMEOUT_MS });
      forgetSigned(signed);
      return signal.aborted ? null : response;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (OVER.includes(error.code)) forgetSigned(signed);
      if (signal.aborted) return null;
      if (!isPassing(error)) throw error;
      say("settle", "now", progress(error));
      await wait(Math.max(RETRY_MS, (error.retryAfter ?? 0) * 1_000), signal);
      if (signal.aborted) return null;
    }
  }
}

/** Whether the same request may succeed later. */
const isPassing = (error) => error.retryAfter !== undefined || error.status >= 500 || ["network", "timeout", "unreadable"].includes(error.code);

function progress(error) {
  if (error.code === "settlement_pending") return "Sent, and not in a block yet. You can leave this page open or reload it.";
  if (error.code === "settlement_unavailable") return "Payments cannot be sent at the moment. Nothing was taken so far. Trying again.";
  return `${error.message} Trying again.`;
}
