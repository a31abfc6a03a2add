// Who buys for the account: what receipts name from now on. A receipt that names somebody is never changed. The dialogs are
// loaded on demand.

import { callApi, sentence } from "/assets/api.js";
import { arrived, busy, h } from "/assets/dom.js";
import { allowed } from "/assets/rights.js";

const dialogs = () => arrived(import("/assets/buyerdialog.js"));

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
    const status = h("p", { class: "bad", role: "alert" });
    const change = h("button", { class: "button button-quiet button-small", type: "button", id: "change-billing" }, buyer ? "Change" : "Add billing details");
    change.addEventListener("click", () =>
      busy(change, async () => {
        status.textContent = "";
        try {
          const { askBuyer } = await dialogs();
          if (change.isConnected) askBuyer(buyer, key, () => load(true));
        } catch (error) {
          status.textContent = sentence(error);
        }
      }),
    );
    const words = buyer
      ? h("address", {}, ...buyerLines(buyer).flatMap((line, place) => [place > 0 && h("br"), line]))
      : h("p", { class: "soft" }, "None yet. Add your company's name, address and VAT number to have them on your receipts.");
    section.replaceChildren(head(...allowed("pay", change)), words, status);
  };
  section.append(head());
  load();
  return section;
}

/** A button that adds the account's details to a receipt that names nobody, where the member may. `done` gets the receipt. */
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
