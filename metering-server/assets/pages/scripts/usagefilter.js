// The filters of the usage tab: a route and a key, which the chart and the recent activity share.

import { h } from "/assets/dom.js";

/**
 * Lists to choose a route and a key from, for one part of the tab. `view` has what is chosen, and `changed` is called
 * after a choice. The list of keys is hidden while there is only one.
 */
export class UsageFilter {
  constructor(name, view, changed) {
    this.view = view;
    const list = (part, label) =>
      h("select", { id: `${name}-${part}`, "aria-label": label, on: { change: ({ currentTarget }) => {
        view[part] = currentTarget.value;
        changed();
      } } });
    this.route = list("route", "Route");
    this.key = list("key", "Key");
  }

  /** Shows the options, and the current choice. */
  show({ routes, keys }) {
    const { view } = this;
    fill(this.route, "All routes", routes.map((route) => [route, route]), view.route);
    fill(this.key, "All keys", [...keys], view.key);
    this.key.hidden = keys.size < 2 && !view.key;
  }
}

/** The current choice stays in the list, even if it is not among the options. */
function fill(select, all, options, chosen) {
  const known = chosen && !options.some(([value]) => value === chosen) ? [[chosen, chosen], ...options] : options;
  select.replaceChildren(h("option", { value: "" }, all), ...known.map(([value, text]) => h("option", { value }, text)));
  select.value = chosen;
}
