// Signs in with a wallet: it signs a text, which then works like a link in mail. Also the account that a link is for.

import { callApi, sentence } from "/assets/api.js";
import { busy, byId, h, say } from "/assets/dom.js";
import { WalletError, connect, onWallets, sign, wallets } from "/assets/wallet.js";

/**
 * Shows the button if the browser has a wallet. Calls `signed` with the link; `more` returns fields to send with the
 * address.
 */
export function offerWallet(signed, more = () => ({})) {
  const button = byId("wallet-button");
  const complain = (words) => say(byId("wallet-error"), words);
  const ask = async () => {
    complain("");
    try {
      const address = await connect();
      const { token, message } = await callApi("/api-key/sessions/wallet", { method: "POST", body: { address, ...more() } });
      await signed({ token, signature: await sign(message, address) });
    } catch (error) {
      complain(error instanceof WalletError ? error.message : sentence(error));
    }
  };
  button.addEventListener("click", () => busy(button, ask));
  const look = () => {
    byId("wallet-part").hidden = wallets().length === 0;
  };
  onWallets(look, new AbortController().signal);
  look();
}

/** Names an account, with the role of a member. */
export const accountName = ({ agent_name: name, org_id: id, role }) => [h("strong", {}, name), " (", h("code", {}, id), ")", role && `, as ${role}`];

/** Asks which of several accounts to sign in to. */
export function accountChooser(accounts) {
  const option = (account, place) => h("label", { class: "check" }, h("input", { type: "radio", name: "account", value: account.org_id, checked: place === 0 }), h("span", {}, ...accountName(account)));
  return [h("span", { id: "choose-account" }, "Which account?"), h("div", { class: "field", role: "radiogroup", "aria-labelledby": "choose-account" }, ...accounts.map(option))];
}

/** The link, with the account that was chosen for it. */
export function ofChosenAccount(link) {
  const chosen = document.querySelector('input[name="account"]:checked')?.value;
  return { ...link, ...(chosen && { org_id: chosen }) };
}
