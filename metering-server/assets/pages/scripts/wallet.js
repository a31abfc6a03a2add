// The browser's wallets (EIP-1193): each that announces itself (EIP-6963), or else the one in `window.ethereum`.

import { rememberWallet, rememberedWallet } from "/assets/session.js";

/** Wallets by the id that each has on this page. */
const announced = new Map();
const listeners = new Set();
/** The wallet that the user chose, by its id on this page. The tab remembers its reverse domain name: ids change. */
let chosen = null;
/** The wallet of a payment in progress. */
let held = null;

addEventListener("eip6963:announceProvider", ({ detail }) => {
  const { info, provider } = detail ?? {};
  if (typeof provider?.request !== "function" || typeof info?.uuid !== "string" || announced.has(info.uuid)) return;
  announced.set(info.uuid, { id: info.uuid, rdns: String(info.rdns || info.uuid), name: wordsOf(info.name), icon: iconOf(info.icon), provider });
  for (const listener of listeners) listener();
});
dispatchEvent(new Event("eip6963:requestProvider"));

/** A name as its wallet wrote it, without control characters, and short enough for a button. */
function wordsOf(name) {
  return String(name ?? "").replace(/[\p{Cc}\p{Cf}]/gu, "").trim().slice(0, 40) || "Unnamed wallet";
}

/** The EIP demands a data URI. Any other URL would send a request to a third party. */
function iconOf(icon) {
  return /^data:image\/(png|svg\+xml|webp|jpeg|gif)[;,]/.test(icon) && icon.length < 100_000 ? icon : null;
}

/** The wallets to choose from, each with `id`, `rdns`, `name`, `icon` and `provider`. */
export function wallets() {
  if (announced.size > 0) return [...announced.values()];
  return globalThis.ethereum ? [{ id: "", rdns: "", name: "Browser wallet", icon: null, provider: globalThis.ethereum }] : [];
}

/** The wallet of the payment in progress, or else the chosen one, or else the first. */
export const wallet = () => held ?? wallets().find(({ id }) => id === chosen) ?? wallets().find(({ rdns }) => rdns === rememberedWallet()) ?? wallets()[0] ?? null;

export function choose({ id, rdns }) {
  chosen = id;
  rememberWallet(rdns);
}

/** Sends all requests of `act` to the wallet that is chosen now, even if another is chosen or announced meanwhile. */
export async function holdWallet(act) {
  held = wallet();
  try {
    return await act();
  } finally {
    held = null;
  }
}

/** Calls `listener` whenever another wallet announces itself, until `signal` is aborted. */
export function onWallets(listener, signal) {
  listeners.add(listener);
  signal.addEventListener("abort", () => listeners.delete(listener));
}

/** The chosen wallet's provider, if the browser has a wallet. */
export const provider = () => wallet()?.provider ?? null;

/** An error of the wallet, worded for people. */
export class WalletError extends Error {
  /** `sent` is `no` when it is certain that nothing was sent, and `unknown` otherwise. */
  constructor(message, sent = "no") {
    super(message);
    this.sent = sent;
  }
}

const GIVEN_UP = "You stopped waiting for your wallet.";
/** Error codes that mean the wallet did not act on the request (EIP-1193, EIP-1474). */
const NOT_DONE = new Map([
  [4001, "You declined the request in your wallet."],
  [4100, "Your wallet does not allow this page to do that. Connect the wallet to this page first."],
  [4200, "Your wallet cannot do that."],
  [4900, "Your wallet is not connected to any network."],
  [4901, "Your wallet is not connected to this network."],
  [-32000, null],
  [-32003, null],
  [-32601, "Your wallet cannot do that."],
  [-32602, null],
]);

/** Sends a request to the wallet. Some never respond, so `signal` ends the wait; the outcome is then unknown. */
export async function request(method, params = [], signal) {
  const asked = provider();
  if (!asked) throw new WalletError("No wallet was found in this browser.");
  try {
    return await Promise.race([asked.request({ method, params }), givenUp(signal)]);
  } catch (error) {
    if (error instanceof WalletError) throw error;
    const message = error?.message ? `Your wallet says: ${error.message}` : "Your wallet refused the request.";
    const wrapped = new WalletError(NOT_DONE.get(error?.code) ?? message, NOT_DONE.has(error?.code) ? "no" : "unknown");
    wrapped.code = error?.code;
    throw wrapped;
  }
}

/** Rejects when `signal` is aborted. */
function givenUp(signal) {
  return new Promise((_, reject) => {
    const stop = () => reject(new WalletError(GIVEN_UP, "unknown"));
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

/** The account that the user chose, in lower case. */
export async function connect(signal) {
  const accounts = await request("eth_requestAccounts", [], signal);
  const account = accounts?.[0];
  if (typeof account !== "string" || !/^0x[0-9a-fA-F]{40}$/.test(account)) {
    throw new WalletError("Your wallet did not share an account. Unlock it and choose one.");
  }
  return account.toLowerCase();
}

/** Switches the wallet to a chain, and adds the chain to it if needed. */
export async function switchChain(chain, coin, signal) {
  const chainId = quantity(chain.chain_id);
  if (await isOn(chainId, signal)) return;
  try {
    await request("wallet_switchEthereumChain", [{ chainId }], signal);
  } catch (error) {
    const unknown = error.code === 4902 || error.code === -32603;
    if (!unknown) throw error;
    if (!chain.rpc_url) {
      throw new WalletError(`Your wallet does not know the network ${chain.name} (chain ${chain.chain_id}). Add it to your wallet first.`);
    }
    const nativeCurrency = { name: coin, symbol: coin, decimals: 18 };
    await request("wallet_addEthereumChain", [{ chainId, chainName: chain.name, rpcUrls: [chain.rpc_url], nativeCurrency }], signal);
    if (!(await isOn(chainId, signal))) await request("wallet_switchEthereumChain", [{ chainId }], signal);
  }
  if (!(await isOn(chainId, signal))) throw new WalletError(`Your wallet is not on ${chain.name}. Switch its network and try again.`);
}

async function isOn(chainId, signal) {
  return BigInt(await request("eth_chainId", [], signal)) === BigInt(chainId);
}

/** The transaction that pays a quote. It names its chain: the wallet may have switched chains since. */
export function payment(quote, from) {
  const [chainId, amount] = [quantity(quote.chain_id), BigInt(quote.amount_atomic)];
  if (quote.payment_kind === "native_value") {
    return { from, to: quote.recipient, value: quantity(amount), chainId };
  }
  // transfer(address,uint256)
  const data = `0xa9059cbb${word(BigInt(quote.recipient))}${word(amount)}`;
  return { from, to: quote.token_contract, value: "0x0", data, chainId };
}

/** The code of an account that delegates to a contract (EIP-7702). Its private key still controls it. */
const DELEGATION = /^0xef0100[0-9a-f]{40}$/i;

/**
 * Checks the account before any money moves, and returns whether it is a smart-contract wallet. Such a wallet can pay
 * in tokens. It cannot pay in the native coin: it sends that by an internal call, which leaves no trace that could be
 * credited.
 */
export async function checkAccount(quote, from, signal) {
  const code = await request("eth_getCode", [from, "latest"], signal);
  if (typeof code !== "string") throw new WalletError("Your wallet did not say whether this account is a smart contract.");
  if (code === "0x" || DELEGATION.test(code)) return false;
  if (quote.payment_kind !== "native_value") return true;
  throw new WalletError(
    `Nothing was sent. ${from} is a smart-contract wallet, and its payment in ${quote.token_symbol} could not be credited. What works: a plan that is paid in a token, or an account whose private key you hold, in this wallet or on a phone.`,
  );
}

/** Fails if the account certainly has too little. If the balance cannot be read, the wallet itself will check it. */
export async function checkFunds(quote, from, signal) {
  let held;
  try {
    held = BigInt(
      quote.payment_kind === "native_value"
        ? await request("eth_getBalance", [from, "latest"], signal)
        : // balanceOf(address)
          await request("eth_call", [{ to: quote.token_contract, data: `0x70a08231${word(BigInt(from))}` }, "latest"], signal),
    );
  } catch {
    if (signal?.aborted) throw new WalletError(GIVEN_UP);
    return;
  }
  if (held < BigInt(quote.amount_atomic)) {
    throw new WalletError(`This account has less than ${quote.amount_human} ${quote.token_symbol}. Choose another account in your wallet, or another plan.`);
  }
}

const quantity = (number) => `0x${BigInt(number).toString(16)}`;
const word = (number) => number.toString(16).padStart(64, "0");

/** The account's signature over a text (EIP-191). */
export function sign(text, account, signal) {
  const bytes = new TextEncoder().encode(text);
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return request("personal_sign", [`0x${hex}`, account], signal);
}
