// Tables that become lists on narrow screens. Roles are explicit, because the list layout removes the implicit ones.

import { h } from "/assets/dom.js";

/**
 * `columns` have a name and may be `number`, `route` or the row's `head`; `rows` have cells in that order.
 * On narrow screens it becomes a list with `stacks`, or is laid out by the class `narrow`; with `scrolls`, its height
 * is limited and it scrolls.
 */
export function table(caption, columns, rows, { stacks = true, narrow = stacks ? "stacks" : "", scrolls = false } = {}) {
  const head = h("tr", { role: "row" }, ...columns.map((column) => heading(column)));
  const body = rows.map((cells) => h("tr", { role: "row" }, ...cells.map((content, place) => cell(columns[place], content))));
  const frame = h(
    "div",
    { class: scrolls ? "table-frame scrolls" : "table-frame" },
    h(
      "table",
      { class: narrow ? `data ${narrow}` : "data", role: "table" },
      h("caption", { class: "quietly-there" }, caption),
      h("thead", { role: "rowgroup" }, head),
      h("tbody", { role: "rowgroup" }, ...body),
    ),
  );
  new ResizeObserver(() => reachable(frame, caption)).observe(frame);
  return frame;
}

/** Makes the table focusable with the keyboard only while it scrolls. */
function reachable(frame, name) {
  const scrolls = frame.scrollWidth > frame.clientWidth || frame.scrollHeight > frame.clientHeight;
  for (const [attribute, value] of Object.entries({ tabindex: "0", role: "group", "aria-label": name })) {
    if (scrolls) frame.setAttribute(attribute, value);
    else frame.removeAttribute(attribute);
  }
}

const heading = (column) => h("th", { scope: "col", role: "columnheader", class: column.number ? "number" : null }, column.name);

function cell(column, content) {
  const classes = [column.number && "number", column.route && "route"].filter(Boolean).join(" ");
  const attributes = { class: classes || null, "data-label": column.name };
  const children = [content].flat(2).filter((child) => child !== "");
  if (column.head) return h("th", { scope: "row", role: "rowheader", ...attributes }, h("span", {}, ...children));
  return h("td", { role: "cell", ...attributes }, ...children);
}

/** A table that shows only the first rows until the user asks for all. */
export function longTable(caption, columns, rows, first, options) {
  if (rows.length <= first) return table(caption, columns, rows, options);
  const place = h("div", {}, table(caption, columns, rows.slice(0, first), options));
  const more = h("button", { class: "button button-quiet button-small table-more", type: "button" }, `Show all ${rows.length}`);
  more.addEventListener("click", () => {
    place.replaceChildren(table(caption, columns, rows, options));
    place.querySelector("table").tabIndex = -1;
    place.querySelector("table").focus();
  });
  place.append(more);
  return place;
}
