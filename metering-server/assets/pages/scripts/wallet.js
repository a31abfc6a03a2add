// A browser wallet (EIP-1193), found as `window.ethereum` or announced (EIP-6963).

import { toUnits } from "/assets/decimal.js";

const announced = [];
addEventListener("eip6963:announceProvider", ({ detail }) => {
  if (detail?.provider && !announced.includes(detail.provider)) announced.push(detail.provider);
});
dispatchEvent(new Event("eip6963:requestProvider"));

/** The wallet, if the browser has one. */
export const provider = () => globalThis.ethereum ?? announced[0] ?? null;

/** What a wallet refused, in words to act on. */
export class WalletError extends Error {
  /** `sent` is `no` when it is sure that nothing was sent, and `unknown` otherwise. */
  constructor(message, sent = "no") {
    super(message);
    this.sent = sent;
  }
}

const GIVEN_UP = "You stopped waiting for your wallet.";
/** Codes with which a wallet says that it did not do what it was asked (EIP-1193, EIP-1474). */
const NOT_DONE = new Map([
  [4001, "You declined in your wallet."],
  [4100, "Your wallet does not allow this page to ask for that. Connect it to this page."],
  [4200, "Your wallet cannot do that."],
  [4900, "Your wallet is not connected to any network."],
  [4901, "Your wallet is not connected to this network."],
  [-32000, null],
  [-32003, null],
  [-32601, "Your wallet cannot do that."],
  [-32602, null],
]);

/** Asks the wallet. Some never answer, so that `signal` ends the waiting; what the wallet does then, nobody knows. */
export async function request(method, params = [], signal) {
  const wallet = provider();
  if (!wallet) throw new WalletError("No wallet was found in this browser.");
  try {
    return await Promise.race([wallet.request({ method, params }), givenUp(signal)]);
  } catch (error) {
    if (error instanceof WalletError) throw error;
    const said = error?.message ? `Your wallet says: ${error.message}` : "Your wallet refused.";
    const wrapped = new WalletError(NOT_DONE.get(error?.code) ?? said, NOT_DONE.has(error?.code) ? "no" : "unknown");
    wrapped.code = error?.code;
    throw wrapped;
  }
}

/** Fails when nobody waits for the wallet any more. */
function givenUp(signal) {
  return new Promise((_, reject) => {
    const stop = () => reject(new WalletError(GIVEN_UP, "unknown"));
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

/** The account that the person chose, lower-case. */
export async function connect(signal) {
  const accounts = await request("eth_requestAccounts", [], signal);
  const account = accounts?.[0];
  if (typeof account !== "string" || !/^0x[0-9a-fA-F]{40}$/.test(account)) {
    throw new WalletError("Your wallet shared no account. Unlock it and choose one.");
  }
  return account.toLowerCase();
}

/** Brings the wallet to a chain, which it is told about if it must be. */
export async function switchChain(chain, coin, signal) {
  const chainId = quantity(chain.chain_id);
  if (await isOn(chainId, signal)) return;
  try {
    await request("wallet_switchEthereumChain", [{ chainId }], signal);
  } catch (error) {
    const unknown = error.code === 4902 || error.code === -32603;
    if (!unknown) throw error;
    if (!chain.rpc_url) {
      throw new WalletError(`Your wallet does not know the network ${chain.name} (chain ${chain.chain_id}). Add it there first.`);
    }
    const nativeCurrency = { name: coin, symbol: coin, decimals: 18 };
    await request("wallet_addEthereumChain", [{ chainId, chainName: chain.name, rpcUrls: [chain.rpc_url], nativeCurrency }], signal);
    if (!(await isOn(chainId, signal))) await request("wallet_switchEthereumChain", [{ chainId }], signal);
  }
  if (!(await isOn(chainId, signal))) throw new WalletError(`Your wallet is not on ${chain.name}. Change its network and try again.`);
}

async function isOn(chainId, signal) {
  return BigInt(await request("eth_chainId", [], signal)) === BigInt(chainId);
}

/** The transaction that pays a plan's price. It names its chain: the wallet may have been moved to another one since it was asked. */
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

/** The code of an account that delegates to a contract (EIP-7702); it is still its private key's. */
const DELEGATION = /^0xef0100[0-9a-f]{40}$/i;

/** Refuses to pay the native coin from a contract: such a payment leaves no trace that could be credited. */
export async function checkAccount(plan, from, signal) {
  if (plan.payment_kind !== "native_value") return;
  const code = await request("eth_getCode", [from, "latest"], signal);
  if (typeof code === "string" && (code === "0x" || DELEGATION.test(code))) return;
  throw new WalletError(
    `This account is a smart-contract wallet, and its payments in ${plan.token_symbol} cannot be credited. Choose a plan that is paid in a token, or an account whose private key you hold.`,
  );
}

/** Says when the account certainly has too little; when that cannot be read, the wallet will say it. */
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
