// The health of the database and the chains.

import { group } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { table } from "/assets/table.js";

const state = (problem) => h("span", { class: problem ? "tag tag-bad" : "tag tag-good" }, problem ? "Problem" : "OK");
const block = (number) => (number === null ? "unknown" : group(number));

/** Whether a gas wallet is paused because too many payments reverted. */
const pause = ({ paused_until: until, reverts }) => until && `Executes no payments until ${until}: ${reverts} reverted within an hour.`;

/** What a wallet that pays gas can still pay for. */
function fuel({ transactions, is_low: low }) {
  if (transactions === null) return null;
  const left = BigInt(transactions) > 1_000_000n ? "over a million" : group(transactions);
  return `Pays the gas of about ${left} more payments.${low ? " Refill it." : ""}`;
}

/** The section. */
export function showHealth({ status, problem, version, chains, gas_wallets: wallets }) {
  const trouble = status === "ok" ? null : (problem ?? "The service is not ready.");
  const rows = [
    [["Service and database", h("span", { class: "under" }, `Version ${version}`)], [state(trouble), trouble && h("span", { class: "under" }, trouble)].filter(Boolean), ""],
    ...chains.map((chain) => [
      [chain.name, h("span", { class: "under" }, `Chain ${chain.chain_id}`)],
      [state(chain.problem), chain.problem && h("span", { class: "under" }, chain.problem)].filter(Boolean),
      [block(chain.confirmed_block), h("span", { class: "under" }, `newest ${block(chain.latest_block)}`)],
    ]),
    ...wallets.map((wallet) => [
      ["Gas wallet", h("span", { class: "under" }, `${wallet.name}, chain ${wallet.chain_id}`), h("span", { class: "under mono break" }, wallet.wallet)],
      [state(wallet.is_low || wallet.problem || wallet.paused_until), ...[wallet.problem, pause(wallet), fuel(wallet)].filter(Boolean).map((words) => h("span", { class: "under" }, words))],
      "",
    ]),
  ];
  const columns = [{ name: "Part", head: true }, { name: "State" }, { name: "Confirmed block", number: true }];
  return h("section", { "aria-labelledby": "health-title", id: "health" }, h("h2", { id: "health-title" }, "Health"), table("Health", columns, rows), chains.length === 0 && h("p", { class: "soft" }, "No chain is configured."));
}
