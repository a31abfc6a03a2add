// Who buys for the account: what receipts name from now on. A receipt that names somebody is never changed.

import { callApi, sentence } from "/assets/api.js";
import { formDialog } from "/assets/dialog.js";
import { busy, h } from "/assets/dom.js";
import { checks, field } from "/assets/field.js";

/** The most lines of an address. */
const LINES_MOST = 6;

/** The lines that name a buyer. */
export const buyerLines = ({ name, address, tax_id: tax }) => [name, ...address, ...(tax ? [`Tax number ${tax}`] : [])];

/** A section that says who buys, with a button that changes it. */
export function billing(key) {
  const section = h("section", { "aria-labelledby": "billing-title", id: "billing" });
  const load = async (focus = false) => {
    try {
      const { buyer } = await callApi("/credits/buyer", { key });
      show(buyer);
      if (focus) section.querySelector("#change-billing").focus();
    } catch (error) {
      section.replaceChildren(head(), h("p", { class: "bad", role: "alert" }, sentence(error)));
    }
  };
  const head = (...more) => h("div", { class: "section-head" }, h("h2", { id: "billing-title" }, "Billing details"), ...more);
  const show = (buyer) => {
    const change = h("button", { class: "button button-quiet button-small", type: "button", id: "change-billing", on: { click: () => ask(buyer, key, () => load(true)) } }, buyer ? "Change" : "Add billing details");
    const words = buyer
      ? h("address", {}, ...buyerLines(buyer).flatMap((line, place) => [place > 0 && h("br"), line]))
      : h("p", { class: "soft" }, "None yet. Add your company's name, address and VAT number to have them on your receipts.");
    section.replaceChildren(head(change), words);
  };
  load();
  return section;
}

/** A button that adds the account's details to a receipt that names nobody. `done` gets the receipt. */
export function addButton(number, { key, done, status }) {
  const add = h("button", { class: "button button-quiet", type: "button", id: "add-buyer" }, "Add billing details");
  const send = async () => done(await callApi(`/credits/receipt/buyer?number=${encodeURIComponent(number)}`, { method: "POST", key }));
  add.addEventListener("click", () =>
    busy(add, async () => {
      status.textContent = "";
      try {
        const { buyer } = await callApi("/credits/buyer", { key });
        confirmAdding(buyer, key, send);
      } catch (error) {
        status.textContent = sentence(error);
      }
    }),
  );
  return add;
}

/** Shows what the receipt will name, once and for all. */
function confirmAdding(buyer, key, send) {
  if (!buyer) {
    ask(buyer, key, (saved) => saved && confirmAdding(saved, key, send));
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

function ask(buyer, key, done) {
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
