// Completes a top-up without the account's key: the wallet that paid signs that the payment is for this account. The
// address of the page has the account and the payment; a client got it in the error for its top-up.

import { ApiError, callApi, sentence } from "/assets/api.js";
import { amount, plural } from "/assets/decimal.js";
import { busy, byId, complain, onSubmit, say, wait } from "/assets/dom.js";
import { REGISTER_TIMEOUT_MS, RETRY_MS, TX_HASH, isPassing, progress } from "/assets/payment.js";
import { transaction } from "/assets/steps.js";
import { connect, provider, sign } from "/assets/wallet.js";

const named = new URLSearchParams(location.search);
const about = { org_id: named.get("account"), plan_id: named.get("plan"), chain_id: Number(named.get("chain")), tx_hash: named.get("tx")?.toLowerCase() };
const status = byId("complete-status");
const failure = byId("complete-error");
/** The text to sign, once it is known. */
let message = null;

/** Sends the payment, and retries as long as a retry may succeed. */
async function send(signature) {
  for (;;) {
    try {
      return await callApi("/credits/topup/complete", { method: "POST", body: { ...about, ...(signature && { signature }) }, timeout: REGISTER_TIMEOUT_MS });
    } catch (error) {
      if (!(error instanceof ApiError) || !isPassing(error)) throw error;
      status.textContent = progress(error);
      await wait(Math.max(RETRY_MS, (error.retryAfter ?? 0) * 1_000));
    }
  }
}

/** Checks what the payment needs: nothing more, or a signature. */
async function look() {
  say(failure, "");
  byId("complete-again").hidden = true;
  status.textContent = "Checking the payment …";
  try {
    done(await send());
  } catch (error) {
    if (error.code === "payer_proof_required") ask(error.body.message);
    else fail(error);
  }
}

function ask(text) {
  message = text;
  status.textContent = "";
  byId("complete-message").textContent = text;
  const payer = payerOf(text);
  byId("complete-payer").textContent = payer ?? "";
  byId("complete-paid-by").hidden = !payer;
  byId("complete-wallet").hidden = !provider();
  byId("complete-elsewhere").open = !provider();
  byId("sign-step").hidden = false;
}

const payerOf = (text) => /^Payer: (0x[0-9a-fA-F]{40})$/m.exec(text)?.[1];

async function signHere() {
  say(failure, "");
  const waiting = new AbortController();
  const cancel = byId("complete-cancel");
  cancel.onclick = () => waiting.abort();
  cancel.hidden = false;
  await busy(byId("complete-sign"), async () => {
    try {
      status.textContent = "Waiting for your wallet …";
      const [account, payer] = [await connect(waiting.signal), payerOf(message)];
      if (payer && account !== payer.toLowerCase()) {
        throw new Error(`Your wallet shared ${account}, but ${payer} paid. In your wallet, choose that address.`);
      }
      status.textContent = "Sign the text in your wallet. It moves no money.";
      await finish(await sign(message, account, waiting.signal));
    } catch (error) {
      fail(error);
    } finally {
      cancel.hidden = true;
    }
  });
}

/** Sends a signature that was made here or elsewhere. */
async function finish(signature) {
  status.textContent = "Crediting …";
  try {
    done(await send(signature));
  } catch (error) {
    fail(error.code === "payer_proof_required" ? new Error(error.body.hint) : error);
  }
}

function done({ org_id: account, amount_added: added, already_credited: known }) {
  status.textContent = "";
  for (const id of ["sign-step", "complete-again"]) byId(id).hidden = true;
  byId("complete-done").replaceChildren(known ? "This payment was already credited: " : "", amount(added, { sign: true }), ` ${plural(added, "credit")} for account ${account}. You can close this page.`);
  byId("done-step").hidden = false;
  byId("complete-title").textContent = "Credited";
  byId("complete-title").focus();
}

function fail(error) {
  status.textContent = "";
  say(failure, sentence(error));
  byId("complete-again").hidden = message !== null;
}

/** Shows the account and payment from the address, with names from the list of plans where it has them. */
async function present() {
  byId("complete-account").textContent = about.org_id;
  byId("complete-plan").textContent = about.plan_id;
  byId("complete-payment").replaceChildren(transaction(about.tx_hash), ` on chain ${about.chain_id}`);
  byId("complete-facts").hidden = false;
  try {
    const { plans, chains } = await callApi("/credits/plans");
    const isOurs = ({ chain_id: id }) => Number(id) === about.chain_id;
    const plan = plans.find((candidate) => isOurs(candidate) && candidate.id === about.plan_id);
    const chain = chains.find(isOurs);
    if (plan?.label) byId("complete-plan").textContent = plan.label;
    const url = chain?.explorer_url && `${chain.explorer_url}/tx/${about.tx_hash}`;
    if (chain) byId("complete-payment").replaceChildren(transaction(about.tx_hash, url), ` on ${chain.name}`);
  } catch {
    // The ids are enough.
  }
}

onSubmit(byId("complete-form"), () => {
  const input = byId("complete-signature");
  const signature = input.value.trim();
  const isHex = /^0x([0-9a-fA-F]{2})+$/.test(signature);
  complain(input, isHex ? "" : "A signature is 0x and hexadecimal digits.");
  say(failure, "");
  if (isHex) busy(byId("complete-form").querySelector("button"), () => finish(signature));
});
byId("complete-sign").addEventListener("click", signHere);
byId("complete-again").addEventListener("click", look);

if (/^org_[A-Za-z0-9]+$/.test(about.org_id ?? "") && about.plan_id && Number.isSafeInteger(about.chain_id) && about.chain_id > 0 && TX_HASH.test(about.tx_hash ?? "")) {
  present();
  look();
} else {
  fail(new Error("This address is not complete. Copy all of it from the message of the program that topped up."));
  byId("complete-again").hidden = true;
}
