// A browser wallet (EIP-1193), found as `window.ethereum` or announced (EIP-6963).

import { toUnits } from "/assets/decimal.js";

const announced = [];
addEventListener("eip6963:announceProvider", ({ detail }) => {
  if (detail?.provider && !announced.includes(detail.provider)) announced.push(detail.provider);
});
dispatchEvent(new Event("eip6963:requestProvider"));

/** The wallet's provider, if the browser has one. */
export const provider = () => globalThis.ethereum ?? announced[0] ?? null;

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
  const wallet = provider();
  if (!wallet) throw new WalletError("No wallet was found in this browser.");
  try {
    return await Promise.race([wallet.request({ method, params }), givenUp(signal)]);
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

/** The transaction that pays a plan's price. It names its chain: the wallet may have switched chains since. */
export function payment(plan, from) {
  const price = toUnits(plan.token_amount, Number(plan.token_decimals));
  const chainId = quantity(plan.chain_id);
  if (plan.payment_kind === "native_value") {
    return { from, to: plan.recipient, value: quantity(price), chainId };
  }
  // transfer(address,uint256)
  const data = `0xa9059cbb${word(BigInt(plan.recipient))}${word(price)}`;
  return { from, to: plan.token_contract, value: "0x0", data, chainId };
}

/** The code of an account that delegates to a contract (EIP-7702). Its private key still controls it. */
const DELEGATION = /^0xef0100[0-9a-f]{40}$/i;

/** Refuses to pay in the native coin from a contract: such a payment leaves no trace by which it could be credited. */
export async function checkAccount(plan, from, signal) {
  if (plan.payment_kind !== "native_value") return;
  const code = await request("eth_getCode", [from, "latest"], signal);
  if (typeof code === "string" && (code === "0x" || DELEGATION.test(code))) return;
  throw new WalletError(
    `This account is a smart-contract wallet, whose payments in ${plan.token_symbol} cannot be credited. Choose a plan that is paid in a token, or an account whose private key you hold.`,
  );
}

/** Fails if the account certainly has too little. If the balance cannot be read, the wallet itself will check it. */
export async function checkFunds(plan, from, signal) {
  const price = toUnits(plan.token_amount, Number(plan.token_decimals));
  let held;
  try {
    held = BigInt(
      plan.payment_kind === "native_value"
        ? await request("eth_getBalance", [from, "latest"], signal)
        : // balanceOf(address)
          await request("eth_call", [{ to: plan.token_contract, data: `0x70a08231${word(BigInt(from))}` }, "latest"], signal),
    );
  } catch {
    if (signal?.aborted) throw new WalletError(GIVEN_UP);
    return;
  }
  if (held < price) {
    throw new WalletError(`This account has less than ${plan.token_amount} ${plan.token_symbol}. Choose another account in your wallet, or another plan.`);
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
