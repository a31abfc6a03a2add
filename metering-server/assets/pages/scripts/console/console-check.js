// Checks a catalogue file: whether it is valid, and what it would change. A manager can then apply it.

import { sentence } from "/assets/api.js";
import { admin } from "/assets/console-api.js";
import { applyButton } from "/assets/console-price-actions.js";
import { rehearsal } from "/assets/console-rehearsal.js";
import { isManager } from "/assets/console-session.js";
import { group, plural } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { table } from "/assets/table.js";

const CHANGES = { added: "Added", removed: "Removed", price: "New price" };
const COLUMNS = [{ name: "Route", head: true, route: true }, { name: "Change" }, { name: "Credits now", number: true }, { name: "Credits then", number: true }];

/** The section. */
export function checkFile() {
  const input = h("input", { id: "catalogue-file", type: "file", accept: ".json,application/json", "aria-describedby": "catalogue-hint" });
  const zone = h("div", { class: "drop" }, h("label", { for: "catalogue-file" }, "Check a catalogue file"), input, h("p", { class: "hint", id: "catalogue-hint" }, "Choose a file, or drop it here. It is only checked: nothing changes until it is applied, or until the server starts with it."));
  const result = h("div", { id: "check-result", role: "status" });
  const rehearsed = h("div", {});
  const check = async (file) => {
    result.replaceChildren(h("p", { class: "soft" }, `Checking ${file.name} …`));
    result.setAttribute("aria-busy", "true");
    rehearsed.replaceChildren();
    try {
      const text = await file.text();
      const found = await checked(text);
      const apply = found.valid && isManager() && h("div", { class: "actions" }, applyButton(text, "Apply"));
      result.replaceChildren(...[...verdict(file.name, found), apply].filter(Boolean));
      if (found.valid && found.changes.length > 0) rehearsed.replaceChildren(rehearsal(text));
    } catch (error) {
      result.replaceChildren(h("p", { class: "notice notice-bad" }, sentence(error)));
    }
    result.removeAttribute("aria-busy");
  };
  input.addEventListener("change", () => {
    const [file] = input.files;
    // So that the same file can be chosen again after it was corrected.
    if (file) check(file).then(() => (input.value = ""));
  });
  for (const kind of ["dragover", "dragenter"]) {
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
  }
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (file) check(file);
  });
  return h("section", { "aria-label": "Check a file", id: "check" }, zone, result, rehearsed);
}

const checked = (text) => admin("/catalogue/check", { method: "POST", body: text });

/** The changes that a catalogue with this name would make. */
export const compare = async (name, text) => verdict(name, await checked(text));

function verdict(name, { valid, problem, routes, changes }) {
  if (!valid) return [h("div", { class: "notice notice-bad" }, h("p", {}, h("strong", {}, `${name} is not valid.`)), ...problem.split("\n").map((line) => h("p", { class: "break" }, line)))];
  const count = String(changes.length);
  const words = changes.length === 0 ? "Routes and prices are those that are served now." : `${count} ${plural(count, "route")} would change.`;
  const notice = h("div", { class: "notice notice-good" }, h("p", {}, h("strong", {}, `${name} is valid.`), ` It has ${group(routes)} ${plural(routes, "route")}. ${words}`));
  if (changes.length === 0) return [notice];
  const cells = changes.map((change) => [
    [h("span", { class: "method" }, change.http_method), ` ${change.route_template}`],
    CHANGES[change.change] ?? change.change,
    amount(change.price_before),
    amount(change.price_after),
  ]);
  return [notice, table("What would change", COLUMNS, cells)];
}

/** A price: a number, or a text with several. */
function amount(text) {
  if (text === null) return "–";
  return /^\d+(\.\d+)?$/.test(text) ? group(text) : h("span", { class: "price-words" }, text);
}
