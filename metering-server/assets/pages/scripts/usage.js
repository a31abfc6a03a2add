// The usage tab: the account's balance, usage, recent activity and purchases.

import { ActivityList } from "/assets/activitylist.js";
import { h } from "/assets/dom.js";
import { heldRequests } from "/assets/held.js";
import { purchases } from "/assets/purchases.js";
import { swap } from "/assets/swap.js";
import { tiles } from "/assets/tiles.js";
import { Trend } from "/assets/trend.js";
import { volumeTiers } from "/assets/volumes.js";

const DEFAULT_VIEW = { period: "30", from: "", to: "", measure: "credits", by: "route", route: "", key: "", activityFrom: "", activityTo: "" };
/** The user's selection. It survives a refresh, but not signing out. */
const view = { ...DEFAULT_VIEW };
let shown = null;

/** Clears the user's selection. */
export function resetView() {
  Object.assign(view, DEFAULT_VIEW);
  shown = null;
}

/** Fills the tab, or shows newer data in it. `now` is the service's time; its days are UTC days. `reload` fetches the data again. */
export function showUsage(panel, data, reload) {
  shown ??= new UsageTab(panel);
  shown.update(data, reload);
}

class UsageTab {
  /** The parts that have no state: each is drawn again when its data changes. */
  #parts = {};
  #drawn = {};

  constructor(panel) {
    const filtered = () => {
      this.trend.draw();
      this.activity.load();
    };
    this.activity = new ActivityList(view, { filtered });
    this.trend = new Trend(view, { filtered, known: (parts) => this.activity.known(parts), day: (bar) => this.#showDay(bar) });
    for (const name of ["tiles", "volumes", "held", "purchases"]) this.#parts[name] = h("span", { hidden: true });
    const { tiles: top, volumes, held, purchases: bought } = this.#parts;
    panel.replaceChildren(top, this.trend.element, volumes, held, this.activity.element, bought);
  }

  update(data, reload) {
    const { key, balance, summary, receipts, held, volumes, now } = data;
    const day = now.toISOString().slice(0, 10);
    this.#part("tiles", [key, balance, summary.by_day, day], () => tiles(balance, summary, now, { key, reload }));
    this.#part("volumes", [volumes, String(volumes.error)], () => volumeTiers(volumes));
    this.#part("held", [balance, held, String(held?.error)], () => heldRequests(balance, held));
    this.#part("purchases", [key, receipts, String(receipts.error)], () => purchases({ key, receipts }));
    this.trend.update(data);
    this.activity.update(data);
  }

  #part(name, data, draw) {
    // A new response time alone is not a change.
    const text = JSON.stringify(data, (member, value) => (member === "date" ? undefined : value));
    if (this.#drawn[name] === text) return;
    this.#drawn[name] = text;
    this.#parts[name] = swap(this.#parts[name], draw());
  }

  /** Shows the activity of a day that was chosen in the chart. */
  #showDay({ from, to }) {
    this.activity.showDays(from, to);
    this.activity.element.scrollIntoView({ block: "start" });
    this.activity.from.focus({ preventScroll: true });
  }
}
