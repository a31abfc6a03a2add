// The page of one receipt, to read, print and download.

import { callApi, fetchText, sentence } from "/assets/api.js";
import { group } from "/assets/decimal.js";
import { busy, byId, h, halves } from "/assets/dom.js";
import { addButton, buyerLines } from "/assets/buyer.js";
import { save } from "/assets/download.js";
import { paid } from "/assets/purchases.js";
import { learnRights } from "/assets/rights.js";
import { copyButton } from "/assets/secret.js";
import { SESSION, rememberedKey } from "/assets/session.js";

const number = new URLSearchParams(location.search).get("number") ?? "";
const path = `/credits/receipt?number=${encodeURIComponent(number)}`;
const longDay = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", day: "numeric", month: "long", year: "numeric" });

async function start() {
  const key = rememberedKey();
  if (!key) {
    say("This receipt belongs to an account. Open the account in this tab, then come back.", h("a", { class: "button", href: "/metering/account" }, "Open account"));
    return;
  }
  try {
    // Only a session can be that of a member.
    const [receipt, balance] = await Promise.all([callApi(path, { key }), key === SESSION ? callApi("/credits/balance", { key }) : {}]);
    learnRights(balance);
    show(receipt, key);
  } catch (error) {
    say(sentence(error), h("a", { class: "button button-quiet", href: "/metering/account" }, "Back to the account"));
    return;
  }
  byId("receipt-actions").hidden = false;
  byId("print").addEventListener("click", () => print());
  const status = byId("receipt-status");
  const download = (id, work) =>
    byId(id).addEventListener("click", ({ currentTarget }) =>
      busy(currentTarget, async () => {
        status.textContent = "";
        try {
          await work();
        } catch (error) {
          status.textContent = sentence(error);
        }
      }),
    );
  download("download-pdf", async () => {
    const { blob } = await fetchText(path.replace("/receipt?", "/receipt.pdf?"), { key, binary: true });
    save(`${number}.pdf`, [blob], "application/pdf");
  });
  download("download", async () => {
    const { text } = await fetchText(path, { key });
    save(`${number}.json`, [text], "application/json");
  });
}

function say(text, action) {
  byId("receipt").replaceChildren(h("h1", {}, "Receipt"), h("p", {}, text), h("p", {}, action));
}

function show(receipt, key) {
  const { seller, buyer } = receipt;
  const note = receipt.credit_notes.find((other) => [other.number, other.reference].some((own) => own.toUpperCase() === number.toUpperCase()));
  const kind = note ? "Credit note" : "Receipt";
  document.title = `${kind} ${(note ?? receipt).number} · ${seller.name}`;
  const line = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, ...value));
  const copy = (what, text) => copyButton(text, "Copy", "button button-quiet button-small", what);
  const parts = [
    h(
      "header",
      { class: "receipt-head" },
      h("div", {}, h("h1", {}, kind), h("p", { class: "mono", id: "receipt-number" }, (note ?? receipt).number)),
      h("address", { id: "seller" }, h("strong", {}, seller.name), ...seller.address.flatMap((text) => [h("br"), text]), seller.tax_id && [h("br"), `Tax number ${seller.tax_id}`], seller.contact && [h("br"), seller.contact]),
    ),
    h("div", { id: "buyer" }, buyer ? [h("h2", {}, "Billed to"), h("address", {}, ...buyerLines(buyer).flatMap((text, place) => [place > 0 && h("br"), text]))] : !note && offer(receipt, key)),
    ...(note ? credited(note, receipt, line) : bought(receipt, line, copy)),
  ];
  byId("receipt").replaceChildren(...parts.filter(Boolean));
}

/** The details of a receipt's purchase. */
function bought(receipt, line, copy) {
  const { payment, customer, credit_notes: notes } = receipt;
  const bonus = receipt.bonus_credits !== null && receipt.bonus_credits !== "0" ? `${group(receipt.bonus_credits)} of them as a bonus` : "";
  const hash = payment.explorer_url ? h("a", { href: payment.explorer_url, rel: "noopener noreferrer", target: "_blank" }, payment.tx_hash) : payment.tx_hash;
  return [
    receipt.status !== "paid" && h("p", { class: "notice notice-bad", id: "reversed" }, h("strong", {}, "Reversed. "), reversed(payment)),
    h("p", { class: "receipt-sum" }, h("strong", {}, paid(payment)), h("span", { class: "soft" }, ` paid on ${longDay.format(new Date(payment.mined_at))}`)),
    h(
      "dl",
      { class: "facts" },
      line("Date", longDay.format(new Date(receipt.issued_at)), h("span", { class: "soft" }, `, ${receipt.issued_at.slice(11, 19)} UTC`)),
      line("Plan", receipt.plan_label ?? receipt.plan_id ?? "Assigned by the operator"),
      line("Credits", group(receipt.credits), bonus && h("span", { class: "soft" }, `, ${bonus}`)),
      line("Account", ...account(customer)),
      line("Amount", paid(payment)),
      payment.value && valueLine(receipt, line),
      ...taxLines(receipt.tax, line),
      ...(payment.processor
        ? [line("Paid by", payment.processor), line("Payment", h("span", { class: "mono break" }, payment.processor_id), copy("the payment", payment.processor_id))]
        : [
            line("Chain", payment.chain_name ? `${payment.chain_name} (${payment.chain_id})` : payment.chain_id),
            line("Transaction", h("span", { class: "mono" }, hash), copy("the transaction", payment.tx_hash)),
            line("Paid from", h("span", { class: "mono" }, halves(payment.payer)), copy("the payer", payment.payer)),
            line("Paid to", h("span", { class: "mono" }, halves(payment.recipient)), copy("the recipient", payment.recipient)),
          ]),
      ...notes.map((note) =>
        line("Credit note", h("a", { class: "mono", href: `/metering/receipt?number=${note.number}` }, note.number), h("span", { class: "soft" }, `, ${amountOf(note, payment)}${note.cancelled_at ? ", cancelled" : ""}`)),
      ),
      receipt.number !== receipt.reference && line("Reference", h("span", { class: "mono" }, receipt.reference)),
    ),
  ];
}

/** The details of a credit note. */
function credited(note, receipt, line) {
  const { payment, customer } = receipt;
  const day = (text) => longDay.format(new Date(text));
  return [
    note.cancelled_at && h("p", { class: "notice" }, h("strong", {}, `Cancelled on ${day(note.cancelled_at)}. `), "The credits are back on the account."),
    h("p", { class: "receipt-sum" }, h("strong", {}, amountOf(note, payment)), h("span", { class: "soft" }, ` credited on ${day(note.issued_at)}`)),
    h(
      "dl",
      { class: "facts" },
      line("Date", day(note.issued_at), h("span", { class: "soft" }, `, ${note.issued_at.slice(11, 19)} UTC`)),
      line("For receipt", h("a", { class: "mono", href: `/metering/receipt?number=${receipt.number}` }, receipt.number), h("span", { class: "soft" }, ` of ${day(receipt.issued_at)}`)),
      line("Credited", amountOf(note, payment)),
      line("Of", paid(payment)),
      line("Account", ...account(customer)),
      ...taxLines(note.tax, line),
      note.reason && line("Reason", note.reason),
      note.number !== note.reference && line("Reference", h("span", { class: "mono" }, note.reference)),
    ),
  ];
}

/** The tax in an amount, if there is any. */
function taxLines(tax, line) {
  if (!tax) return [];
  const { name, percent, currency, gross, net, amount, note } = tax;
  return [
    line("Without tax", `${group(net)} ${currency}`),
    line("Tax", `${group(amount)} ${currency}`, h("span", { class: "soft" }, `, ${name} ${percent} %`)),
    line("With tax", `${group(gross)} ${currency}`),
    note && line("Note", note),
  ];
}

/** The amount of a credit note; the whole payment if its token is no longer known. */
const amountOf = ({ amount }, payment) => (amount === null || payment.token_symbol === null ? paid(payment) : `${amount} ${payment.token_symbol}`);

const account = ({ agent_name: name, email, org_id: id }) => [name, email ? `, ${email}` : "", h("span", { class: "soft mono" }, ` ${id}`)];

/** Why a payment was reversed. */
function reversed({ processor, amount_reversed: amount, token_symbol: symbol }) {
  if (processor) return `${amount} ${symbol} was refunded or disputed, and its credits were taken back.`;
  return "A reorganisation of its chain removed this payment, and the credits were taken back. They return if the payment is mined again.";
}

/** The value of the payment, with its rate. If that is the amount with tax, which has a line of its own, only the rate. */
function valueLine({ payment: { value, token_symbol: symbol }, tax }, line) {
  const { currency, amount, rate, rate_source: source, rate_as_of: at } = value;
  const soft = (text) => h("span", { class: "soft" }, text);
  if (amount === null) return line("Value", `None in ${currency}`, soft(": no exchange rate was known when the payment was credited"));
  const [price, origin] = [`${rate} ${currency} per ${symbol ?? "token"}`, ` (${source}, ${at.slice(0, 10)} ${at.slice(11, 16)} UTC)`];
  if (tax?.gross === amount && tax.currency === currency) return line("Exchange rate", price, soft(origin));
  return line("Value", `${group(amount)} ${currency}`, soft(` at ${price}${origin}`));
}

/** A receipt without billing details can get them, once. They are not printed. */
function offer(receipt, key) {
  const done = (changed) => {
    show(changed, key);
    byId("receipt-status").textContent = "The billing details were added.";
  };
  return addButton(receipt.number, { key, done, status: byId("receipt-status") });
}

start();
