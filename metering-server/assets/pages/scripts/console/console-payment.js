// All about one credited payment, at the side of the page.

import { sentence } from "/assets/api.js";
import { admin, query } from "/assets/console-api.js";
import { knownChains } from "/assets/console-chains.js";
import { STATES, USES, paid, rate, stateTag, worth } from "/assets/console-credited.js";
import { time } from "/assets/console-time.js";
import { group } from "/assets/decimal.js";
import { openPanel } from "/assets/dialog.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { copyButton } from "/assets/secret.js";
import { transaction } from "/assets/steps.js";

/** Opens it with what the list knows. What the receipt adds follows once it has arrived. */
export function openPayment(payment) {
  const list = h("dl", { class: "facts" });
  const status = h("p", { class: "status", role: "status" });
  const show = (receipt) => list.replaceChildren(...facts(payment, receipt).map(([term, ...words]) => h("div", {}, h("dt", {}, term), h("dd", {}, ...words))));
  const means = STATES[payment.state]?.means;
  show(null);
  openPanel(paid(payment), [h("p", {}, stateTag(payment.state)), means && h("p", { class: "hint" }, means), list, status, h("p", { class: "hint" }, "Times are UTC.")]);
  if (!payment.receipt) {
    status.textContent = "The payment was imported, so it has no receipt.";
    return;
  }
  status.textContent = "Loading the receipt …";
  admin(`/accounts/${payment.org_id}/receipt${query({ number: payment.receipt })}`).then(
    (receipt) => {
      show(receipt);
      status.textContent = "";
    },
    (error) => {
      status.textContent = `The receipt could not be loaded. ${sentence(error)}`;
    },
  );
}

/** The facts: name and content of each. `receipt` is null until it has arrived. */
function facts(payment, receipt) {
  const { org_id: account, agent_name: name, value } = payment;
  return [
    ...(receipt ? papers(account, receipt) : []),
    ["Account", h("a", { href: `#/accounts/${account}` }, receipt?.customer.agent_name ?? name ?? account)],
    ["Account's id", mono(account), copy(account, "the account's id")],
    ["Used as", USES[payment.used_as] ?? payment.used_as],
    ["Plan", receipt?.plan_label ?? payment.plan_id ?? "None"],
    receipt && ["Credits", figure(receipt.credits)],
    ["Paid", paid(payment)],
    value && ["Value", worth(value), h("span", { class: "line soft" }, rate(value))],
    ...(receipt ? taxes(receipt.tax) : []),
    ...(payment.processor ? atProcessor(payment) : onChain(payment, receipt)),
    ["Paid at", time(payment.mined_at)],
    ["Recorded", time(payment.recorded_at)],
    payment.reversed_at && ["Reversed", time(payment.reversed_at)],
  ].filter(Boolean);
}

const mono = (text) => h("span", { class: "mono break" }, text);
const copy = (text, what) => copyButton(text, "Copy", "button button-quiet button-small", what);

/** The receipt and its credit notes, each a link to its file. */
function papers(account, { number, credit_notes: notes }) {
  const file = (one) => h("a", { class: "mono", href: `/admin/accounts/${account}/receipt.pdf${query({ number: one })}`, download: "" }, one);
  return [["Receipt (PDF)", file(number)], ...notes.map((note) => ["Credit note (PDF)", file(note.number), note.cancelled_at && ", cancelled"])];
}

function taxes(tax) {
  if (!tax) return [["Tax", "None on the receipt"]];
  const { name, percent, currency, gross, net, amount, note } = tax;
  return [
    ["Without tax", `${group(net)} ${currency}`],
    ["Tax", `${group(amount)} ${currency}, ${name} ${percent} %`],
    ["With tax", `${group(gross)} ${currency}`],
    note && ["Note", note],
  ];
}

const atProcessor = ({ processor, processor_id: id }) => [["Processor", processor], ["Payment", mono(id), copy(id, "the payment's id")]];

function onChain({ chain_id: id, tx_hash: hash, block_number: block, payer_address: payer, recipient }, receipt) {
  const name = receipt?.payment.chain_name ?? knownChains().find((chain) => chain.chain_id === id)?.name;
  return [
    ["Chain", name ? `${name} (${id})` : id],
    ["Transaction", transaction(hash, receipt?.payment.explorer_url), copy(hash, "the transaction")],
    ["Block", group(block)],
    ["From", mono(payer)],
    ["To", mono(recipient)],
  ];
}
