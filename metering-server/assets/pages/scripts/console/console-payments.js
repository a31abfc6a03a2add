// Payments: unclaimed and credited ones.

import { arrivals } from "/assets/console-arrivals.js";
import { chains } from "/assets/console-chains.js";
import { filtered } from "/assets/console-filter.js";
import { FIELDS, records } from "/assets/console-records.js";
import { h } from "/assets/dom.js";

/** The view. */
export async function payments() {
  const known = await chains();
  const fields = [
    { name: "account", label: "Account", placeholder: "org_…" },
    { name: "chain_id", label: "Chain", options: [["", "All"], ...known.map(({ chain_id: id, name }) => [id, name]), ["0", "Taken by a processor"]] },
    ...FIELDS,
  ];
  const credited = await filtered({ label: "Credited payments", fields, path: "/payments", list: (values) => records(values) });
  const { section, start } = arrivals(known);
  return {
    title: "Payments",
    body: [
      h(
        "div",
        { class: "sections" },
        section,
        h("section", { "aria-labelledby": "credited-title", id: "credited" }, h("h2", { id: "credited-title" }, "Credited"), ...credited),
      ),
    ],
    shown: start,
  };
}
