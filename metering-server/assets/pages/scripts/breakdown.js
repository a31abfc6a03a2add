// The breakdown of usage: the chart's legend, with the amounts of each route or key. Choosing one filters.

import { bar, largest } from "/assets/bar.js";
import { fromUnits, group } from "/assets/decimal.js";
import { breakable, h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { NAMED, change } from "/assets/split.js";
import { swatch } from "/assets/stack.js";
import { longTable } from "/assets/table.js";

/** How many rows are shown at first. */
const FIRST = NAMED;
const NAMES = { route: "Route", key: "Key" };

/**
 * The table of a `split`. `isChosen(id)` returns whether the tab is filtered by a series, and `choose(id)` changes
 * that.
 */
export function breakdown(usage, { isChosen, choose }) {
  const { by, series } = usage;
  if (series.length === 0) return h("span", { hidden: true });
  const most = largest(series.map(({ credits }) => fromUnits(credits)));
  const columns = [{ name: NAMES[by], head: true, route: by === "route" }, { name: "Calls", number: true }, { name: "Credits", number: true }];
  const changes = usage.before ? series.map(compared) : [];
  const isCompared = changes.some(Boolean);
  if (isCompared) columns.push({ name: "Change", number: true });
  const rows = series.map((one, place) => [
    [h("span", { class: "legend" }, swatch(Math.min(place, NAMED)), button(one, isChosen(one.id), choose)), bar(fromUnits(one.credits), most)],
    group(String(one.calls)),
    figure(fromUnits(one.credits)),
    ...(isCompared ? [changes[place] ?? h("span", { class: "soft" }, isNew(one) ? "New" : "–")] : []),
  ]);
  const table = longTable(`Usage by ${by}`, columns, rows, FIRST, { stacks: false });
  return h("div", { id: "breakdown", class: "breakdown" }, table);
}

function button({ id, name }, pressed, choose) {
  return h("button", { class: "legend-name", type: "button", "data-series": id, "aria-pressed": String(pressed), title: pressed ? "Show all" : "Show only this", on: { click: () => choose(id) } }, ...breakable(name));
}

const isNew = ({ before }) => before.calls === 0n && before.credits === 0n;

/** The change from the period before, if it is meaningful. */
const compared = ({ credits, calls, before }) => (before.credits > 0n ? change(credits, before.credits) : change(calls, before.calls));
