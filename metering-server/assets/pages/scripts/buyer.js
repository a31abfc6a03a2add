// The account's billing details, which new receipts show. A receipt that has billing details never changes. The dialogs
// are loaded on demand.

import { callApi, sentence } from "/assets/api.js";
import { arrived, busy, byId, h } from "/assets/dom.js";
import { allowed } from "/assets/rights.js";

const dialogs = () => arrived(import("/assets/buyerdialog.js"));

/** The lines of a buyer's details. */
export const buyerLines = ({ name, address, tax_id: tax }) => [name, ...address, ...(tax ? [`Tax number ${tax}`] : [])];

/** The billing details in the account's settings, with a button that changes them. `visit` is as in `showList`. */
export async function showBilling(visit, hadFocus = false) {
  if (!visit.here()) return;
  const [place, action] = [byId("billing-details"), byId("billing-action")];
  try {
    const { buyer } = await callApi("/credits/buyer", { key: visit.key() });
    if (!visit.here()) return;
    const status = h("p", { class: "bad", role: "alert" });
    const change = h("button", { class: "button button-quiet button-small", type: "button", id: "change-billing" }, buyer ? "Change" : "Add billing details");
    change.addEventListener("click", () =>
      busy(change, async () => {
        status.textContent = "";
        try {
          const { askBuyer } = await dialogs();
          if (visit.here()) askBuyer(buyer, visit.key(), () => showBilling(visit, true));
        } catch (error) {
          status.textContent = sentence(error);
        }
      }),
    );
    const words = buyer
      ? h("address", {}, ...buyerLines(buyer).flatMap((line, place) => [place > 0 && h("br"), line]))
      : h("p", { class: "soft" }, "None yet. Add your company's name, address and VAT number to have them on your receipts.");
    action.replaceChildren(...allowed("pay", change));
    place.replaceChildren(words, status);
    if (hadFocus) change.focus();
  } catch (error) {
    if (visit.here()) place.replaceChildren(h("p", { class: "bad", role: "alert" }, sentence(error)));
  }
}

/**
 * A button that adds the account's details to a receipt without any, if the member may do that. `done` gets the
 * receipt.
 */
export function addButton(number, { key, done, status }) {
  const add = h("button", { class: "button button-quiet", type: "button", id: "add-buyer" }, "Add billing details");
  const send = async () => done(await callApi(`/credits/receipt/buyer?number=${encodeURIComponent(number)}`, { method: "POST", key }));
  add.addEventListener("click", () =>
    busy(add, async () => {
      status.textContent = "";
      try {
        const [{ buyer }, { confirmAdding }] = await Promise.all([callApi("/credits/buyer", { key }), dialogs()]);
        confirmAdding(buyer, key, send);
      } catch (error) {
        status.textContent = sentence(error);
      }
    }),
  );
  return allowed("pay", add);
}
