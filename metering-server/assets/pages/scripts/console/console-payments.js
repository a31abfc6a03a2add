// Payments: unclaimed and credited ones.

import { arrivals } from "/assets/console-arrivals.js";
import { chains } from "/assets/console-chains.js";
import { filtered } from "/assets/console-filter.js";
import { FIELDS, records } from "/assets/console-records.js";
import { h } from "/assets/dom.js";

/** The view. */
export async function payments() {
  const [known, credited] = await Promise.all([chains(), filtered({ label: "Credited payments", fields: FIELDS, path: "/payments", list: (values) => records(values) })]);
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
