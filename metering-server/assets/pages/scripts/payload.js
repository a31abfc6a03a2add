// The bytes of a delivery to a webhook, and the beginning of its response if that was a failure. Loaded on demand.

import { callApi, sentence } from "/assets/api.js";
import { h } from "/assets/dom.js";
import { pretty } from "/assets/pretty.js";

/**
 * A button that shows them in a row below its own, as wide as the table, and hides them again. `path` is the delivery's,
 * `label` names it for screen readers, and `responded` is whether its last attempt failed with a response.
 */
export function payload(path, label, { responded, key, here }) {
  const cell = h("td", { class: "payload", role: "cell" });
  const row = h("tr", { class: "opened", role: "row" }, cell);
  const button = h("button", { class: "link-button opens-row", type: "button", "data-action": "payload", "aria-expanded": "false" }, responded ? "Payload and response" : "Payload", h("span", { class: "quietly-there" }, ` of ${label}`));
  let isLoaded = false;
  const load = async () => {
    cell.replaceChildren(h("p", { class: "status", role: "status" }, "Loading …"));
    try {
      const { body, response } = await callApi(path, { key });
      if (!here()) return;
      const answer = response ? text("Response", response, label) : h("p", { class: "soft" }, "The response was empty.");
      cell.replaceChildren(h("div", { class: "payload-parts" }, text("Payload", body, label), responded && answer));
      isLoaded = true;
    } catch (error) {
      if (here()) cell.replaceChildren(h("p", { class: "bad", role: "alert" }, sentence(error)));
    }
  };
  button.addEventListener("click", () => {
    const opens = !row.isConnected;
    button.setAttribute("aria-expanded", String(opens));
    if (!opens) {
      row.remove();
      return;
    }
    const own = button.closest("tr");
    cell.colSpan = own.cells.length;
    own.after(row);
    if (!isLoaded) load();
  });
  return button;
}

/** A text below its name. */
const text = (name, content, label) => h("div", {}, h("p", { class: "soft" }, name), h("pre", { class: "message", tabindex: "0", role: "group", "aria-label": `${name} of ${label}`, "data-part": name }, ...pretty(content)));
