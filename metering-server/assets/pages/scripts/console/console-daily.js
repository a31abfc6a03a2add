// Amounts by day, as a chart with its table.

import { chart } from "/assets/chart.js";
import { choice } from "/assets/choice.js";
import { dayBefore } from "/assets/days.js";
import { fromUnits, group, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { table } from "/assets/table.js";

/** The measures: label, name within a sentence, and whether it is an amount of credits. */
const MEASURES = {
  credits_used: ["Used", "credits used", true],
  credits_sold: ["Sold", "credits sold", true],
  credits_granted: ["Net grants", "credits granted, less corrections", true],
  usage_events: ["Calls", "calls", false],
  new_accounts: ["New accounts", "new accounts", false],
};

/** The sum of a field over some days, exactly. */
export const sum = (days, name) => fromUnits(days.map((day) => toUnits(day[name])).reduce((total, units) => total + units, 0n));

/** The section: the last `count` days, up to and including `report.to`. `measures` are the fields to choose from. */
export function daily(report, count, measures = Object.keys(MEASURES)) {
  const known = new Map(report.by_day.map((day) => [day.day, day]));
  const none = Object.fromEntries(Object.keys(MEASURES).map((name) => [name, "0"]));
  const last = new Date(`${report.to}T00:00:00Z`);
  const days = Array.from({ length: count }, (_, place) => dayBefore(last, count - 1 - place)).map((day) => ({ day, ...none, ...known.get(day) }));
  const place = h("div", {});
  const show = (name) => place.replaceChildren(plotted(days, name));
  show(measures[0]);
  const options = measures.map((name) => [name, MEASURES[name][0]]);
  return h(
    "section",
    { "aria-labelledby": "daily-title", id: "daily" },
    h("div", { class: "section-head" }, h("h2", { id: "daily-title" }, "By day"), choice("Measure", options, measures[0], show)),
    place,
    h("details", { class: "table-details" }, h("summary", {}, "Show as a table"), numbers(days, measures)),
  );
}

/** The chart of one measure. The chart reads amounts as credits or calls, so the measure is passed as one of these. */
function plotted(days, name) {
  const [, what, isCredits] = MEASURES[name];
  const kind = isCredits ? "credits" : "calls";
  const points = days.map((day) => ({ day: day.day, [kind]: day[name] }));
  const read = (title, point) => [h("strong", {}, title), " · ", isCredits ? figure(point[kind]) : group(point[kind]), ` ${what}`];
  return chart(points, { [kind]: sum(days, name) }, kind, { read, what });
}

function numbers(days, measures) {
  const columns = [{ name: "Day", head: true }, ...measures.map((name) => ({ name: MEASURES[name][0], number: true }))];
  const busy = [...days].reverse().filter((day) => measures.some((name) => day[name] !== "0"));
  if (busy.length === 0) return h("p", { class: "soft" }, "Nothing happened in these days.");
  const cells = busy.map((day) => [day.day, ...measures.map((name) => (MEASURES[name][2] ? figure(day[name]) : group(day[name])))]);
  return table("By day, UTC", columns, cells, { stacks: false, scrolls: true });
}
