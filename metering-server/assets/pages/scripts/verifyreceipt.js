// The page that verifies a signed receipt of a request: in the browser, with the keys of this service or with pasted ones.

import { fetchText, sentence } from "/assets/api.js";
import { credits } from "/assets/atoms.js";
import { group } from "/assets/decimal.js";
import { busy, byId, complain, h, onSubmit, say } from "/assets/dom.js";
import { ReceiptFault, canVerify, verifyReceipt } from "/assets/receiptproof.js";

const HAPPENED = { charge: "Charged", capture: "Captured from a hold", refund: "Refunded" };
/** The service whose keys this page has. */
const SERVICE = document.body.dataset.apiUrl || location.origin;

async function verify() {
  const [receipt, pasted] = [byId("receipt"), byId("keys").value.trim()];
  [receipt, byId("keys")].forEach((input) => complain(input, ""));
  byId("receipt-result").replaceChildren();
  try {
    const stated = await verifyReceipt(receipt.value, pasted ? read(pasted) : await published());
    if (!pasted && stated.iss !== SERVICE) throw new ReceiptFault(`It says that it is from ${stated.iss}, and the keys here are those of ${SERVICE}. Open ${stated.iss}/verify-receipt, or paste the keys of that service.`);
    show(stated, pasted ? "with one of the keys that you pasted" : "with a key of this service");
  } catch (error) {
    if (!(error instanceof ReceiptFault)) return complain(pasted && error instanceof SyntaxError ? byId("keys") : receipt, sentence(error));
    byId("receipt-result").replaceChildren(h("div", { class: "notice notice-bad" }, h("strong", {}, "This receipt is not valid. "), error.message));
  }
}

async function published() {
  return JSON.parse((await fetchText("/.well-known/metering-keys")).text);
}

function read(pasted) {
  try {
    return JSON.parse(pasted);
  } catch {
    throw new SyntaxError("This is not a JSON Web Key set.");
  }
}

function show(stated, how) {
  const line = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, ...value));
  const mono = (text) => h("span", { class: "mono" }, text);
  byId("receipt-result").replaceChildren(
    h("div", { class: "notice notice-good" }, h("strong", {}, "This receipt is valid. "), `It was signed as ${stated.iss} ${how}, and not changed since.`),
    h(
      "dl",
      { class: "facts" },
      line(HAPPENED[stated.kind] ?? stated.kind, `${group(credits(stated.atoms))} credits`),
      line("Balance after", stated.balance === null ? "not known" : `${group(credits(stated.balance))} credits`),
      line("Time", `${new Date(stated.at).toISOString().slice(0, 19).replace("T", " ")} UTC`),
      line("Route", mono(stated.route)),
      line("Request", mono(stated.request)),
      line("Price version", stated.prices === null ? "not known" : String(stated.prices)),
      line("Client", stated.source),
      line("Account", mono(stated.sub)),
      line("Key", mono(stated.key)),
      stated.log && line("In the log", mono(stated.log), stated.by && ` by ${new Date(stated.by).toISOString().slice(0, 19).replace("T", " ")} UTC`),
    ),
  );
}

async function start() {
  if (!(await canVerify())) {
    say(byId("receipt-unable"), isSecureContext ? "This browser has no Ed25519 signatures, which receipts are signed with. Use a newer one, or the command metering receipt verify." : "Browsers verify signatures on https pages only. Open this page over https, or use the command metering receipt verify.");
    return;
  }
  onSubmit(byId("receipt-form"), () => busy(byId("receipt-button"), verify));
}

start();
