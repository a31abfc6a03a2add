// Payments that arrived on a chain and belong to no account. The service reads the chain for each search, so a search
// covers a range of blocks.

import { sentence } from "/assets/api.js";
import { askToAssign } from "/assets/console-assign.js";
import { admin, query } from "/assets/console-api.js";
import { accountLink, paid } from "/assets/console-credited.js";
import { csvButton } from "/assets/console-csv.js";
import { fragmentQuery } from "/assets/console-filter.js";
import { checks, field, optional } from "/assets/field.js";
import { isManager } from "/assets/console-session.js";
import { time } from "/assets/console-time.js";
import { group, plural } from "/assets/decimal.js";
import { busy, h } from "/assets/dom.js";
import { transaction } from "/assets/steps.js";
import { table } from "/assets/table.js";

/** Reading a chain takes longer than reading the database. */
const TIMEOUT = 120_000;

const CSV = ["mined_at", "chain", "block_number", "tx_hash", "payer_address", "amount_human", "token_symbol", "amount_atomic", "token_contract", "status", "org_ids", "note"];

const STATUSES = {
  used: "Credited",
  unclear: "Cannot be credited",
  quoted: "For a quote",
  known_payer: "From an account's wallet",
  linked_wallet: "From a known wallet",
  unknown_payer: "From an unknown wallet",
};

/**
 * The section, and a function that starts the search in the fragment: with a chain and blocks, for a link to one
 * payment.
 */
export function arrivals(chains) {
  const title = h("h2", { id: "arrivals-title" }, "Not claimed");
  const section = h("section", { "aria-labelledby": "arrivals-title", id: "arrivals" }, title);
  if (chains.length === 0) {
    section.append(h("p", { class: "soft" }, "No chain is configured."));
    return { section, start: () => {} };
  }
  const wanted = fragmentQuery();
  const fields = [
    { name: "chain", label: "Chain", value: wanted.chain ?? "", options: chains.map(({ name }) => [name, name]) },
    { name: "from_block", label: "First block (optional)", value: wanted.from_block ?? "", inputmode: "numeric", check: optional(checks.whole) },
    { name: "to_block", label: "Last block (optional)", value: wanted.to_block ?? "", inputmode: "numeric", check: optional(checks.whole) },
    { name: "all", label: "Also those that an account has", box: true },
  ].map(field);
  const submit = h("button", { class: "button", type: "submit" }, "Search the chain");
  const said = h("p", { class: "status", id: "arrivals-status", role: "status" });
  const place = h("div", { class: "sections-small" });
  const form = h("form", { class: "block-form", novalidate: true }, ...fields.map(({ element }) => element), submit);
  const search = (from) => {
    if (from) fields.find(({ name }) => name === "from_block").input.value = from;
    const wrong = fields.filter((one) => !one.validate());
    if (wrong.length > 0) {
      wrong[0].input.focus();
      return;
    }
    const values = Object.fromEntries(fields.map((one) => [one.name, one.value()]));
    busy(submit, async () => {
      said.textContent = "Reading the chain …";
      place.replaceChildren();
      try {
        const found = await admin(`/payments/arrivals${query({ ...values, all: values.all ? "true" : undefined })}`, { timeout: TIMEOUT });
        said.textContent = inWords(found);
        place.replaceChildren(...results(found, again));
      } catch (error) {
        said.textContent = sentence(error);
      }
    });
  };
  // The pressed button disappeared with the results.
  const again = (from) => {
    search(from);
    submit.focus({ preventScroll: true });
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  section.append(h("p", { class: "soft" }, "Finds payments to your addresses that belong to no account. Without blocks, the search covers the newest confirmed ones."), form, said, place);
  return { section, start: () => wanted.chain && wanted.from_block && search() };
}

function inWords({ payments, scanned }) {
  const count = String(payments.length);
  const ranges = scanned.map(({ chain, from_block: from, to_block: to }) => `${chain}, blocks ${group(from)} to ${group(to)}`);
  return `${count} ${plural(count, "payment")} found. Searched ${ranges.join("; ")}.`;
}

/** The lists. `search` searches again, from a block if one is given. */
function results({ payments, unreadable, scanned, agent_names: names = {} }, search) {
  const lists = [];
  if (payments.length > 0) {
    const columns = [{ name: "Mined (UTC)", head: true }, { name: "Transaction" }, { name: "Paid", number: true }, { name: "Status" }, isManager() && { name: "Action" }];
    const rows = payments.map((payment) => [time(payment.mined_at), [transaction(payment.tx_hash), payer(payment)], paid(payment), judged(payment, names), isManager() && assignable(payment, () => search())]);
    const file = csvButton("arrivals", CSV, () => payments.map((payment) => CSV.map((column) => (column === "org_ids" ? payment.org_ids.join(" ") : payment[column]))));
    lists.push(h("div", {}, table("Payments found", columns.filter(Boolean), rows.map((cells) => cells.filter((cell) => cell !== false))), h("div", { class: "list-tools" }, file)));
  }
  if (unreadable.length > 0) {
    const columns = [{ name: "Block", head: true }, { name: "Transaction" }, { name: "Reason" }];
    const rows = unreadable.map((arrival) => [group(arrival.block_number), arrival.tx_hash ? transaction(arrival.tx_hash) : "the whole block", arrival.reason]);
    lists.push(h("div", {}, h("h3", {}, "Could not be read"), table("Arrivals that could not be read", columns, rows)));
  }
  const next = scanned.find(({ next_block: block }) => block)?.next_block;
  if (next) lists.push(h("button", { class: "button button-quiet button-small", type: "button", id: "search-on", on: { click: () => search(next) } }, `Search on from block ${group(next)}`));
  return lists;
}

const payer = ({ payer_address: address }) => h("span", { class: "under mono break" }, address ? `from ${address}` : "");

function judged(payment, names) {
  const [first] = payment.org_ids;
  const owner = first && h("span", { class: "under" }, ...[accountLink(first, names[first])].flat());
  return [STATUSES[payment.status] ?? payment.status, h("span", { class: "under" }, payment.note), owner].filter(Boolean);
}

function assignable(payment, again) {
  if (payment.status === "used" || payment.status === "unclear") return "";
  const label = h("span", { class: "quietly-there" }, ` payment ${payment.tx_hash}`);
  return h("button", { class: "button button-quiet button-small", type: "button", "data-assign": payment.tx_hash, on: { click: () => askToAssign(payment, again) } }, "Assign", label);
}
