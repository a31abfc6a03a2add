// What was or will be sent to a webhook: the body, byte for byte, loaded when somebody wants to see it.

import { callApi, sentence } from "/assets/api.js";
import { h } from "/assets/dom.js";
import { pretty } from "/assets/pretty.js";

/** A part that can be opened. `path` is the delivery's, and `label` names it for screen readers. */
export function payload(path, label, { key, here }) {
  const place = h("div", {});
  const part = h("details", { class: "payload" }, h("summary", {}, "Payload", h("span", { class: "quietly-there" }, ` of ${label}`)), place);
  part.addEventListener("toggle", async () => {
    if (!part.open || place.hasChildNodes()) return;
    place.replaceChildren(h("p", { class: "status", role: "status" }, "Loading …"));
    try {
      const { body } = await callApi(path, { key });
      if (here()) place.replaceChildren(h("pre", { class: "message", tabindex: "0", role: "group", "aria-label": `Payload of ${label}` }, ...pretty(body)));
    } catch (error) {
      place.replaceChildren();
      part.open = false;
      if (here()) part.after(h("p", { class: "bad", role: "alert" }, sentence(error)));
    }
  });
  return part;
}
