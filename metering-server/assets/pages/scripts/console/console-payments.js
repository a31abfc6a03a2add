// Payments: those that nobody claimed, and those that were credited.

import { arrivals } from "/assets/console-arrivals.js";
import { chains } from "/assets/console-chains.js";
import { records } from "/assets/console-records.js";
import { h } from "/assets/dom.js";

/** The view. */
export async function payments() {
  const [known, credited] = await Promise.all([chains(), records("/payments", { empty: "No payment was credited yet.", accounts: true })]);
  return {
    title: "Payments",
    body: [
      h(
        "div",
        { class: "sections" },
        arrivals(known),
        h("section", { "aria-labelledby": "credited-title", id: "credited" }, h("h2", { id: "credited-title" }, "Credited"), credited),
      ),
    ],
  };
}
