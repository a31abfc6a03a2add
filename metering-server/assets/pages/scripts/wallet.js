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

/** Asks the wallet. */
export async function request(method, params = []) {
  const wallet = provider();
  if (!wallet) throw new WalletError("No wallet was found in this browser.");
  try {
    return await wallet.request({ method, params });
  } catch (error) {
    const said = error?.message ? `Your wallet says: ${error.message}` : "Your wallet refused.";
    const wrapped = new WalletError(NOT_DONE.get(error?.code) ?? said, NOT_DONE.has(error?.code) ? "no" : "unknown");
    wrapped.code = error?.code;
    throw wrapped;
  }
}

/** The account that the person chose, lower-case. */
export async function connect() {
  const accounts = await request("eth_requestAccounts");
  const account = accounts?.[0];
  if (typeof account !== "string" || !/^0x[0-9a-fA-F]{40}$/.test(account)) {
    throw new WalletError("Your wallet shared no account. Unlock it and choose one.");
  }
  return account.toLowerCase();
}

/** Brings the wallet to a chain, which it is told about if it must be. */
export async function switchChain(chain, coin) {
  const chainId = `0x${BigInt(chain.chain_id).toString(16)}`;
  if (await isOn(chainId)) return;
  try {
    await request("wallet_switchEthereumChain", [{ chainId }]);
  } catch (error) {
    const unknown = error.code === 4902 || error.code === -32603;
    if (!unknown) throw error;
    if (!chain.rpc_url) {
      throw new WalletError(`Your wallet does not know the network ${chain.name} (chain ${chain.chain_id}). Add it there first.`);
    }
    const nativeCurrency = { name: coin, symbol: coin, decimals: 18 };
    await request("wallet_addEthereumChain", [{ chainId, chainName: chain.name, rpcUrls: [chain.rpc_url], nativeCurrency }]);
    if (!(await isOn(chainId))) await request("wallet_switchEthereumChain", [{ chainId }]);
  }
  if (!(await isOn(chainId))) throw new WalletError(`Your wallet is not on ${chain.name}. Change its network and try again.`);
}

async function isOn(chainId) {
  return BigInt(await request("eth_chainId")) === BigInt(chainId);
}

/** The transaction that pays a plan's price. */
export function payment(plan, from) {
  const price = toUnits(plan.token_amount, Number(plan.token_decimals));
  if (plan.payment_kind === "native_value") {
    return { from, to: plan.recipient, value: `0x${price.toString(16)}` };
  }
  // transfer(address,uint256)
  const data = `0xa9059cbb${word(BigInt(plan.recipient))}${word(price)}`;
  return { from, to: plan.token_contract, value: "0x0", data };
}

/** Says when the account certainly has too little; when that cannot be read, the wallet will say it. */
export async function checkFunds(plan, from) {
  const price = toUnits(plan.token_amount, Number(plan.token_decimals));
  let held;
  try {
    held = BigInt(
      plan.payment_kind === "native_value"
        ? await request("eth_getBalance", [from, "latest"])
        : // balanceOf(address)
          await request("eth_call", [{ to: plan.token_contract, data: `0x70a08231${word(BigInt(from))}` }, "latest"]),
    );
  } catch {
    return;
  }
  if (held < price) {
    throw new WalletError(`This account has less than ${plan.token_amount} ${plan.token_symbol}. Choose another account in your wallet, or another plan.`);
  }
}

const word = (number) => number.toString(16).padStart(64, "0");

/** The account's signature over a text (EIP-191). */
export function sign(text, account) {
  const bytes = new TextEncoder().encode(text);
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return request("personal_sign", [`0x${hex}`, account]);
}
