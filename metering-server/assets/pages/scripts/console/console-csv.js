// What a list shows, as a CSV file (RFC 4180).

import { save } from "/assets/download.js";
import { h } from "/assets/dom.js";

const NUMBER = /^[+-]?\d+(\.\d+)?$/;

/** A cell. A text that a spreadsheet would take for a formula begins with an apostrophe, as in files of the service. */
function cell(value) {
  const text = String(value ?? "");
  const safe = /^[=+\-@\t\r]/.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The text of a file with these columns. */
export const csvText = (columns, rows) => [columns, ...rows].map((cells) => `${cells.map(cell).join(",")}\r\n`).join("");

/** A button that saves the visible rows. `rows()` returns the cells of every row, as texts. */
export function csvButton(name, columns, rows) {
  const file = `${name}.csv`;
  return h("button", { class: "button button-quiet button-small", type: "button", "data-download": file, on: { click: () => save(file, [csvText(columns, rows())], "text/csv") } }, "Download as CSV");
}
