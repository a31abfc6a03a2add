// The health of the database and the chains.

import { group } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { table } from "/assets/table.js";

const state = (problem) => h("span", { class: problem ? "tag tag-bad" : "tag tag-good" }, problem ? "Problem" : "OK");
const block = (number) => (number === null ? "unknown" : group(number));

/** The section. */
export function showHealth({ status, problem, version, chains }) {
  const trouble = status === "ok" ? null : (problem ?? "The service is not ready.");
  const rows = [
    [["Service and database", h("span", { class: "under" }, `Version ${version}`)], [state(trouble), trouble && h("span", { class: "under" }, trouble)].filter(Boolean), ""],
    ...chains.map((chain) => [
      [chain.name, h("span", { class: "under" }, `Chain ${chain.chain_id}`)],
      [state(chain.problem), chain.problem && h("span", { class: "under" }, chain.problem)].filter(Boolean),
      [block(chain.confirmed_block), h("span", { class: "under" }, `newest ${block(chain.latest_block)}`)],
    ]),
  ];
  const columns = [{ name: "Part", head: true }, { name: "State" }, { name: "Confirmed block", number: true }];
  return h("section", { "aria-labelledby": "health-title", id: "health" }, h("h2", { id: "health-title" }, "Health"), table("Health", columns, rows), chains.length === 0 && h("p", { class: "soft" }, "No chain is configured."));
}
