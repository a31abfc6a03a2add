// One price version: its catalogue, what it would change, and a rehearsal until it takes effect.

import { sentence } from "/assets/api.js";
import { admin } from "/assets/console-api.js";
import { compare } from "/assets/console-check.js";
import { countdown } from "/assets/console-countdown.js";
import { applyButton, cancelButton } from "/assets/console-price-actions.js";
import { appliedBy, readVersions, state } from "/assets/console-prices.js";
import { rehearsal } from "/assets/console-rehearsal.js";
import { isManager } from "/assets/console-session.js";
import { time } from "/assets/console-time.js";
import { h } from "/assets/dom.js";
import { save } from "/assets/download.js";
import { pretty } from "/assets/pretty.js";
import { copyButton } from "/assets/secret.js";

/** The view. */
export async function price(number) {
  // Load the text first: the service returns 404 for it if there is no such version.
  const text = await admin(`/catalogue/versions/${number}`, { read: JSON.parse });
  const version = (await readVersions()).find((one) => one.number === number);
  const name = `version-${number}.json`;
  const file = h("button", { class: "button button-quiet", type: "button", "data-download": name, on: { click: () => save(name, [text], "application/json") } }, "Download");
  const actions = isManager() ? [version.status === "scheduled" && cancelButton(version), again(version) && applyButton(text, "Apply again")] : [];
  return {
    title: `Price version ${number}`,
    back: h("p", { class: "back" }, h("a", { href: "#/prices" }, "Price versions")),
    lead: version.status === "scheduled" ? [state(version), " takes effect ", countdown(version.since)] : state(version),
    actions: [...actions, file],
    body: [figures(version), h("div", { class: "sections" }, version.status === "scheduled" && rehearsal(text), version.status !== "in_force" && (await changes(`Version ${number}`, text)), catalogue(text))],
  };
}

/** Whether a version can be applied once more. */
const again = ({ status }) => status === "past" || status === "cancelled";

function figures(version) {
  const facts = [
    ["In force since (UTC)", time(version.since)],
    ["Applied by", appliedBy(version)],
    ["Recorded (UTC)", time(version.recorded_at)],
    version.cancelled_at && ["Cancelled (UTC)", time(version.cancelled_at)],
    ["SHA3-256", h("span", { class: "mono" }, version.hash)],
  ];
  // Not "in force": the version never was, or is not yet.
  if (version.status === "scheduled" || version.status === "cancelled") facts[0][0] = "Scheduled for (UTC)";
  return h("dl", { class: "figures", id: "figures" }, ...facts.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** What would change if the version replaced what is served now. */
async function changes(name, text) {
  const found = await compare(name, text).catch((error) => [h("p", { class: "notice notice-bad", role: "alert" }, sentence(error))]);
  return h("section", { "aria-labelledby": "changes-title", id: "changes" }, h("h2", { id: "changes-title" }, "Compared with what is served"), ...found);
}

function catalogue(text) {
  const words = h("pre", { tabindex: "0", role: "group", "aria-labelledby": "text-title" }, ...pretty(text));
  const head = h("div", { class: "snippet-head" }, "JSON", copyButton(text, "Copy", "button button-quiet button-small", "the catalogue"));
  return h("section", { "aria-labelledby": "text-title", id: "catalogue-text" }, h("h2", { id: "text-title" }, "Catalogue"), h("div", { class: "snippet" }, head, words));
}
