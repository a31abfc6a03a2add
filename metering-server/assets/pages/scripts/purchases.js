// Purchases, each with its receipt, and the ledger to download.

import { callApi, sentence } from "/assets/api.js";
import { busy, h } from "/assets/dom.js";
import { downloadButton } from "/assets/download.js";
import { figure } from "/assets/figure.js";
import { table } from "/assets/table.js";

/** The purchases. `receipts` is the first part of the list, or the error of loading it. */
export function purchases({ key, receipts }) {
  const ledger = downloadButton("Ledger (CSV)", "ledger.csv", { key }, () => "/credits/ledger.csv");
  const section = h("section", { "aria-labelledby": "purchases-title", id: "purchases" });
  const head = h("div", { class: "section-head" }, h("h2", { id: "purchases-title" }, "Purchases"), ledger);
  if (receipts.error) {
    section.append(head, h("p", { class: "bad", role: "alert" }, sentence(receipts.error)));
    return section;
  }
  if (receipts.receipts.length === 0) {
    section.append(head, h("p", { class: "soft" }, "Nothing bought yet. The ledger lists credits that were granted, too."));
    return section;
  }
  const place = h("div", {});
  const show = ({ receipts: list, next }) => {
    const more = next && h("button", { class: "button button-quiet button-small table-more", type: "button" }, "Show older purchases");
    more?.addEventListener("click", () =>
      busy(more, async () => {
        try {
          const older = await callApi(`/credits/receipts?before=${next}`, { key });
          show({ receipts: [...list, ...older.receipts], next: older.next });
          place.querySelector("table").tabIndex = -1;
          place.querySelector("table").focus();
        } catch (error) {
          more.after(h("p", { class: "bad", role: "alert" }, sentence(error)));
        }
      }),
    );
    place.replaceChildren(...[listOf(list), more].filter(Boolean));
  };
  show(receipts);
  section.append(head, place);
  return section;
}

function listOf(receipts) {
  const columns = [{ name: "Date", head: true }, { name: "Plan" }, { name: "Paid", number: true }, { name: "Credits", number: true }, { name: "Receipt" }];
  const rows = receipts.map((receipt) => [
    h("time", { datetime: receipt.issued_at, title: receipt.issued_at }, receipt.issued_at.slice(0, 10)),
    [receipt.plan_label ?? receipt.plan_id ?? "Assigned by the operator", receipt.status !== "paid" && [" ", h("span", { class: "tag" }, receipt.status.replace("_", " "))]].filter(Boolean),
    paid(receipt.payment),
    figure(receipt.credits, { sign: true }),
    h("a", { href: `/metering/receipt?number=${receipt.number}` }, receipt.number),
  ]);
  return table("Purchases", columns, rows, { narrow: "two-lines" });
}

/** The amount in tokens; in the smallest unit when the token is no longer known. */
export function paid({ token_amount: amount, token_symbol: symbol, amount_atomic: atomic, token_contract: contract }) {
  return amount === null ? `${atomic} of ${contract}` : `${amount} ${symbol}`;
}
