// The dialogs for billing details, and for adding them to a receipt.

import { callApi } from "/assets/api.js";
import { buyerLines } from "/assets/buyer.js";
import { formDialog } from "/assets/dialog.js";
import { h } from "/assets/dom.js";
import { checks, field } from "/assets/field.js";

/** The maximum number of lines of an address. */
const LINES_MOST = 6;

/** Shows the details that the receipt will have permanently. */
export function confirmAdding(buyer, key, send) {
  if (!buyer) {
    askBuyer(buyer, key, (saved) => saved && confirmAdding(saved, key, send));
    return;
  }
  formDialog({
    title: "Add billing details",
    about: [h("p", {}, "This receipt will name:"), h("address", {}, ...buyerLines(buyer).flatMap((line, place) => [place > 0 && h("br"), line])), h("p", { class: "soft" }, "What a receipt says cannot be changed later. Its number and date stay.")],
    confirm: "Add them",
    send,
    done: () => {},
  });
}

/** Asks who buys. `done` gets the details that were saved, or null if they were removed. */
export function askBuyer(buyer, key, done) {
  const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
  formDialog({
    title: "Billing details",
    about: [h("p", { class: "soft" }, "They are on receipts from your next purchase on. Receipts that name somebody stay as they are.")],
    fields: [
      field({ name: "name", label: "Name or company", value: buyer?.name ?? "", autocomplete: "organization", maxlength: "120", check: buyer ? undefined : checks.given, hint: buyer ? "Leave everything empty to remove the details." : undefined }),
      field({ name: "address", label: "Address", lines: 4, value: buyer?.address.join("\n") ?? "", autocomplete: "street-address", check: (text) => (lines(text).length > LINES_MOST ? `Use at most ${LINES_MOST} lines.` : "") }),
      field({ name: "tax_id", label: "VAT or tax number", value: buyer?.tax_id ?? "", maxlength: "40" }),
    ],
    confirm: "Save",
    explain: (one, text) => `${one.label} ${text}.`,
    send: ({ name, address, tax_id: tax }) => callApi("/credits/buyer", { method: "PUT", key, body: { name: name || null, address: lines(address), ...(tax && { tax_id: tax }) } }),
    done: ({ buyer: saved }) => done(saved),
  });
}
