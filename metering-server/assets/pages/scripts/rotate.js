// Replaces the key of an account with a signature of the wallet that paid for it. Works without the key, too.

import { callApi, sentence } from "/assets/api.js";
import { busy, h } from "/assets/dom.js";
import { firstCall, secret } from "/assets/secret.js";
import { connect, provider, sign } from "/assets/wallet.js";

/**
 * Fills `place`. `account` is the balance document of the signed-in account, if any. `here` returns whether the same
 * user is still on the page; if so, `rotated` is called with the new key.
 */
export function showRotate(place, visit) {
  place.replaceChildren(...content(place, visit));
}

function content(place, { account = null, here, rotated }) {
  const about = h("p", { class: "soft" }, "A new key replaces the old one, which stops working immediately. Balance, usage and limits stay the same.");
  if (!provider()) {
    return [
      about,
      h(
        "div",
        { class: "notice", "data-needs": "wallet" },
        h("p", {}, h("strong", {}, "This needs a browser wallet. ")),
        h("p", {}, account ? `Install or enable the one with ${account.payer_address}, the address that paid for this account, and reload the page.` : "Install or enable the one that paid for the account, and reload the page. This works for accounts that were opened by paying from a wallet."),
        h("p", { class: "soft" }, "A program can do this too: ", h("a", { href: "/docs#tag-recovery" }, "POST /api-key/recover/challenge"), "."),
      ),
    ];
  }
  const status = h("p", { class: "status", role: "status" });
  const failure = h("div", { class: "notice notice-bad", role: "alert", hidden: true });
  const button = h("button", { class: "button", type: "button", "data-action": "rotate" }, "Rotate key");
  const cancel = h("button", { class: "button button-quiet", type: "button", hidden: true }, "Stop waiting for the wallet");
  button.addEventListener("click", () => {
    failure.hidden = true;
    busy(button, async () => {
      const waiting = new AbortController();
      cancel.onclick = () => {
        waiting.abort();
        button.focus();
      };
      cancel.hidden = false;
      try {
        const proof = await prove(account, waiting.signal, (text) => {
          status.textContent = text;
        });
        cancel.hidden = true;
        // After signing out, do not replace the key.
        if (!here()) return;
        status.textContent = "Replacing the key …";
        const { api_key: key, remaining_keys: others } = await callApi("/api-key/recover/verify", { method: "POST", body: proof });
        if (!here()) {
          showElsewhere(key, others);
          return;
        }
        rotated(key);
        place.replaceChildren(...newKey(key, others));
        place.querySelector("h2").focus();
      } catch (error) {
        failure.textContent = error.code === "no_linked_wallet" ? "This address has not paid for an account here. In your wallet, choose the address that did." : sentence(error);
        failure.hidden = false;
      } finally {
        cancel.hidden = true;
        status.textContent = "";
      }
    });
  });
  const wallet = account && h("p", {}, "Your wallet must hold the address ", h("code", {}, account.payer_address), ".");
  return [about, wallet, failure, h("div", { class: "actions" }, button, cancel), status].filter(Boolean);
}

/** Gets the wallet's signature over a new challenge, in the form that the service expects. */
async function prove(account, signal, say) {
  say("Waiting for your wallet …");
  const address = await connect(signal);
  if (account && address !== account.payer_address.toLowerCase()) {
    throw new Error(`Your wallet shared ${address}, but ${account.payer_address} paid for this account. In your wallet, choose that address.`);
  }
  const challenge = await callApi("/api-key/recover/challenge", { method: "POST", body: { address } });
  say("Sign the message in your wallet. It moves no money.");
  const signature = await sign(challenge.message, address, signal);
  return { address, nonce: challenge.nonce, signature };
}

/** Shows a new key, once. `others` are the keys that still work after a recovery. */
export function newKey(key, others = []) {
  return [
    h("h2", { tabindex: "-1" }, "Your new key"),
    h("p", {}, h("strong", {}, "Save it now: it is shown only once. "), "The old one has stopped working."),
    secret(key),
    ...remaining(others),
    firstCall(key),
  ];
}

function remaining(others) {
  if (others.length === 0) return [];
  const list = others.map(({ id, name }) => h("li", {}, name, " ", h("code", {}, id)));
  return [
    h(
      "div",
      { class: "notice notice-warn", id: "remaining-keys" },
      h("p", {}, h("strong", {}, others.length === 1 ? "One other key still works." : `${others.length} other keys still work.`), " Keys that could manage keys have stopped working; these cannot. Delete those that you do not know, in the Keys tab of your account."),
      h("ul", {}, ...list),
    ),
  ];
}

/** Shows a key that arrived after signing out, since it cannot be shown again. It is not stored. */
export function showElsewhere(key, others = []) {
  const close = h("form", { method: "dialog", class: "actions" }, h("button", { class: "button" }, "I have saved it"));
  const words = h("p", {}, h("strong", {}, "Save it now: it is shown only once. "), "You signed out while it was being created. The old one has stopped working.");
  const dialog = h("dialog", { "aria-labelledby": "late-key-title", id: "late-key" }, h("h2", { id: "late-key-title" }, "Your new key"), words, secret(key), ...remaining(others), close);
  // Escape is easily pressed by accident, and the key cannot be shown again.
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
