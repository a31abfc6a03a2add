// Lists that the service sends in parts: a table that grows.

import { sentence } from "/assets/api.js";
import { busy, h } from "/assets/dom.js";
import { table } from "/assets/table.js";

/**
 * A table with the first part of a list, and a button for the next. `load(next)` returns `{items, next}`, and `row` the
 * cells of an item. `empty` is said when there is nothing.
 */
export async function rows({ caption, columns, row, load, empty, more = "Show more" }) {
  return parts({ load, empty, more, draw: (items) => table(caption, columns, items.map(row)) });
}

/** The same with any list: `draw` returns the element for all items so far. */
export async function parts({ load, empty, more, draw }) {
  const first = await load();
  const place = h("div", {});
  const show = (items, next) => {
    if (items.length === 0) {
      place.replaceChildren(h("p", { class: "soft empty" }, empty));
      return;
    }
    const list = draw(items);
    const button = h("button", { class: "button button-quiet button-small table-more", type: "button" }, more);
    button.addEventListener("click", () =>
      busy(button, async () => {
        try {
          const following = await load(next);
          show([...items, ...following.items], following.next);
          const grown = place.firstElementChild;
          grown.tabIndex = -1;
          grown.focus({ preventScroll: true });
        } catch (error) {
          button.after(h("p", { class: "bad", role: "alert" }, sentence(error)));
        }
      }),
    );
    place.replaceChildren(...[list, next && button].filter(Boolean));
  };
  show(first.items, first.next);
  return place;
}
