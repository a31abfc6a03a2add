// The audit log: every action, by whom and why.

import { sentence } from "/assets/api.js";
import { query } from "/assets/console-api.js";
import { log } from "/assets/console-log.js";
import { busy, h } from "/assets/dom.js";
import { downloadButton } from "/assets/download.js";

/** The view. */
export async function audit(subject = "") {
  const entries = (wanted) => log({ subject: wanted, empty: wanted ? "No entry is about this." : "No action was taken yet." });
  const input = h("input", { id: "subject", type: "search", value: subject, autocomplete: "off", spellcheck: "false", "aria-describedby": "subject-hint" });
  const button = h("button", { class: "button", type: "submit" }, "Filter");
  const said = h("p", { class: "status", role: "status", id: "log-status" });
  const place = h("div", { id: "log" }, await entries(subject));
  const hint = h("p", { class: "hint", id: "subject-hint" }, "An account's id, plan:ID@CHAIN_ID, payment:CHAIN_ID:HASH or operator:NAME. Empty shows everything.");
  const form = h("form", { role: "search", class: "search-form" }, h("div", { class: "field" }, h("label", { for: "subject" }, "Subject"), input), button);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(button, async () => {
      const wanted = input.value.trim();
      said.textContent = "";
      try {
        place.replaceChildren(await entries(wanted));
        said.textContent = wanted ? `Entries about ${wanted}` : "All entries";
        history.replaceState(null, "", `#/audit${query({ subject: wanted })}`);
      } catch (error) {
        said.textContent = sentence(error);
      }
    });
  });
  const file = downloadButton("Download (CSV)", "audit.csv", { credentials: "same-origin" }, () => `/admin/audit.csv${query({ subject: input.value.trim() })}`);
  return { title: "Audit log", lead: "Every action of an operator and of the command line. Entries are never changed.", actions: [file], body: [form, hint, said, place] };
}
