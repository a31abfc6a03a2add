// Lists that the service sends in parts: a table that grows.

import { sentence } from "/assets/api.js";
import { csvButton } from "/assets/console-csv.js";
import { busy, h } from "/assets/dom.js";
import { table } from "/assets/table.js";

/**
 * A table with the first part of a list, and a button for the next. `load(next)` returns `{items, next}`, and `row` the
 * cells of an item. `empty` is shown when the list is empty. `csv` describes a file of the shown items: its `name`, its
 * `columns`, and the `cells` of an item.
 */
export async function rows({ caption, columns, row, ...more }) {
  return parts({ ...more, draw: (items) => table(caption, columns, items.map(row)) });
}

/** The same with any list: `draw` returns the element for all items so far. */
export async function parts({ load, empty, more = "Show more", draw, csv }) {
  const first = await load();
  const place = h("div", {});
  const show = (items, next) => {
    const none = h("p", { class: "soft empty" }, next ? "Nothing found so far. The search looked at the newest only." : empty);
    const list = items.length === 0 ? none : draw(items);
    const file = csv && items.length > 0 && csvButton(csv.name, csv.columns, () => items.map(csv.cells));
    const tools = [next && following(items, next), file].filter(Boolean);
    place.replaceChildren(list, ...(tools.length > 0 ? [h("div", { class: "list-tools" }, ...tools)] : []));
  };
  const following = (items, next) => {
    const button = h("button", { class: "button button-quiet button-small table-more", type: "button" }, items.length === 0 ? "Look further back" : more);
    button.addEventListener("click", () =>
      busy(button, async () => {
        try {
          const part = await load(next);
          show([...items, ...part.items], part.next);
          const grown = place.firstElementChild;
          grown.tabIndex = -1;
          grown.focus({ preventScroll: true });
        } catch (error) {
          button.after(h("p", { class: "bad", role: "alert" }, sentence(error)));
        }
      }),
    );
    return button;
  };
  show(first.items, first.next);
  return place;
}
