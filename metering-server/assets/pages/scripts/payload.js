// The bytes of a delivery to a webhook, and the beginning of its response if that was a failure. Loaded on demand.

import { callApi, sentence } from "/assets/api.js";
import { h } from "/assets/dom.js";
import { pretty } from "/assets/pretty.js";

/** A part that can be opened. `path` is the delivery's, `label` names it for screen readers, and `responded` is whether its last attempt failed with a response. */
export function payload(path, label, { responded, key, here }) {
  const place = h("div", {});
  const part = h("details", { class: "payload" }, h("summary", {}, responded ? "Payload and response" : "Payload", h("span", { class: "quietly-there" }, ` of ${label}`)), place);
  part.addEventListener("toggle", async () => {
    if (!part.open || place.hasChildNodes()) return;
    place.replaceChildren(h("p", { class: "status", role: "status" }, "Loading …"));
    try {
      const { body, response } = await callApi(path, { key });
      const text = (name, content) => h("pre", { class: "message", tabindex: "0", role: "group", "aria-label": `${name} of ${label}`, "data-part": name }, ...pretty(content));
      const answered = response ? [h("p", { class: "soft" }, "Response"), text("Response", response)] : [h("p", { class: "soft" }, "The response was empty.")];
      if (here()) place.replaceChildren(text("Payload", body), ...(responded ? answered : []));
    } catch (error) {
      place.replaceChildren();
      part.open = false;
      if (here()) part.after(h("p", { class: "bad", role: "alert" }, sentence(error)));
    }
  });
  return part;
}
