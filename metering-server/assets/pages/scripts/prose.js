// Renders the small subset of Markdown in API descriptions: paragraphs, lists, tables and code.

import { h } from "/assets/dom.js";

/** Elements for a text; with `inline` only inline elements. */
export function prose(text, { inline: within = false } = {}) {
  return within ? inline(text) : text.split(/\n{2,}/).filter(Boolean).map(block);
}

function block(text) {
  const lines = text.split("\n");
  if (lines.every((line) => line.startsWith("|"))) return rows(lines);
  if (lines.every((line) => /^[-*] /.test(line))) return h("ul", {}, ...lines.map((line) => h("li", {}, ...inline(line.slice(2)))));
  return h("p", {}, ...inline(lines.join(" ")));
}

function rows([head, , ...lines]) {
  const cells = (line) => line.replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
  return h(
    "div",
    { class: "table-frame" },
    h(
      "table",
      { class: "data" },
      h("thead", {}, h("tr", {}, ...cells(head).map((cell) => h("th", { scope: "col" }, ...inline(cell))))),
      h("tbody", {}, ...lines.map((line) => h("tr", {}, ...cells(line).map((cell) => h("td", {}, ...inline(cell)))))),
    ),
  );
}

function inline(text) {
  return text.split(/(`[^`]+`)/).map((part) => (part.startsWith("`") && part.length > 2 ? h("code", {}, part.slice(1, -1)) : part));
}
