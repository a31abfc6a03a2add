// Usage over time: a chart of credits or calls by day, split by route or by key, with its table and a download.

import { callApi, sentence } from "/assets/api.js";
import { breakdown } from "/assets/breakdown.js";
import { choice, press } from "/assets/choice.js";
import { dayAfter, dayBefore, dayCount, rangeProblem } from "/assets/days.js";
import { fromUnits, group, plural } from "/assets/decimal.js";
import { h, say } from "/assets/dom.js";
import { downloadButton } from "/assets/download.js";
import { figure } from "/assets/figure.js";
import { sampleUrl, snippet } from "/assets/secret.js";
import { REST, change, partsOf, split } from "/assets/split.js";
import { Stack } from "/assets/stack.js";
import { table } from "/assets/table.js";
import { UsageFilter } from "/assets/usagefilter.js";

const PERIODS = [["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["custom", "Custom"]];
const MEASURES = [["credits", "Credits"], ["calls", "Calls"]];
const SPLITS = [["route", "By route"], ["key", "By key"]];
/** The maximum number of days per report. */
const MOST_DAYS = 366;

/**
 * The section. `view` is the user's selection. `filtered()` is called when the route or the key changes, `known(parts)`
 * when the available ones are known, and `day(bar)` when a bar is chosen.
 */
export class Trend {
  #rows = null;
  /** The loaded data, by the requested range. */
  #loaded = "";
  #data = null;

  constructor(view, { filtered, known, day }) {
    Object.assign(this, { view, filtered, known, day });
    this.filter = new UsageFilter("usage", view, () => this.filtered());
    this.periods = choice("Period", PERIODS, view.period, (chosen) => this.#setPeriod(chosen));
    this.measures = choice("Measure", MEASURES, view.measure, (chosen) => this.#set("measure", chosen));
    this.splits = choice("Split", SPLITS, view.by, (chosen) => this.#set("by", chosen));
    const date = (name, label) => h("input", { type: "date", id: `usage-${name}`, "aria-label": label, on: { change: () => this.#setDates() } });
    [this.from, this.to] = [date("from", "First day"), date("to", "Last day")];
    this.wrong = h("p", { class: "field-error", role: "alert", id: "usage-dates-error", hidden: true });
    this.dates = h("div", { class: "dates", hidden: true }, this.from, h("span", { "aria-hidden": "true" }, "–"), this.to);
    this.clear = h("button", { class: "button button-quiet button-small", type: "button", id: "usage-clear", hidden: true, on: { click: () => this.#clear() } }, "Clear filters");
    this.place = h("div", {});
    this.file = h("span", {});
    this.choices = h("div", { class: "chart-choices" }, this.periods, this.dates, this.measures, this.splits, this.filter.route, this.filter.key, this.clear);
    this.element = h(
      "section",
      { "aria-labelledby": "by-day-title", id: "trend" },
      h("div", { class: "section-head" }, h("h2", { id: "by-day-title" }, "Usage"), this.file),
      this.choices,
      this.wrong,
      this.place,
    );
  }

  /** Loads the usage again. `data` has the `key`, the `summary` of the last 30 days, and the service's time, `now`. */
  async update(data) {
    this.#data = data;
    this.#loaded = "";
    await this.draw();
  }

  /** Shows the user's selection, and loads it first if necessary. */
  async draw() {
    const { view } = this;
    const { key, summary, now } = this.#data;
    const isNew = summary.by_day.length === 0 && view.period === "30" && !view.route && !view.key;
    this.choices.hidden = isNew;
    if (isNew) {
      this.file.replaceChildren();
      this.place.replaceChildren(firstCall());
      return;
    }
    const [from, to] = this.#range();
    const range = `${from} ${to}`;
    if (this.#loaded !== range) {
      this.#loaded = range;
      this.place.setAttribute("aria-busy", "true");
      try {
        const count = dayCount(from, to);
        const rows = await daily(key, 2 * count <= MOST_DAYS ? dayAfter(from, -count) : from, to);
        if (this.#loaded !== range || this.#data.key !== key) return;
        this.#rows = rows;
      } catch (error) {
        if (this.#loaded !== range) return;
        this.#loaded = "";
        this.place.replaceChildren(h("p", { class: "notice notice-bad", role: "alert" }, sentence(error)));
        return;
      } finally {
        this.place.removeAttribute("aria-busy");
      }
    }
    const parts = partsOf(this.#rows);
    this.known(parts);
    this.filter.show(parts);
    this.clear.hidden = !view.route && !view.key;
    this.splits.hidden = parts.keys.size < 2;
    if (this.splits.hidden) view.by = "route";
    press(this.splits, view.by);
    const file = downloadButton("Usage (CSV)", `usage-${from}-${to}.csv`, { key }, () => `/credits/usage.csv?from=${from}&to=${to}`);
    const month = to.slice(0, 7);
    const statement = "statements" in document.body.dataset && h("a", { class: "button button-quiet button-small", href: `/metering/statement?period=${month}` }, `Statement of ${month}`);
    this.file.replaceChildren(...[file, statement].filter(Boolean));
    this.#show(split(this.#rows, { ...view, from, to }), dayBefore(now, 0));
  }

  /** Filters by a route or a key, or removes the filter if it is already set. */
  choose(id) {
    const { view } = this;
    const part = view.by;
    view[part] = view[part] === id ? "" : id;
    // One route is split by key, and one key by route, since the chart would have one colour otherwise.
    if (view[part]) view.by = part === "route" ? "key" : "route";
    this.filtered();
  }

  #clear() {
    Object.assign(this.view, { route: "", key: "", by: "route" });
    this.filter.route.focus();
    this.filtered();
  }

  #show(usage, today) {
    const { view } = this;
    const isOpen = this.place.querySelector("details")?.open ?? false;
    const focused = where(this.place);
    const stack = new Stack(usage, { measure: view.measure, today, focus: focused?.day, choose: ({ bar, part }) => (part && part.id !== REST ? this.choose(part.id) : this.day(bar)) });
    const reading = h("p", { class: "chart-reading soft" }, ...inWords(usage, view, today));
    const isChosen = (id) => view[usage.by] === id;
    this.place.replaceChildren(
      h("div", { class: "chart-frame" }, reading, stack.element),
      breakdown(usage, { isChosen, choose: (id) => this.choose(id) }),
      h("details", { class: "table-details", open: isOpen }, h("summary", {}, "Show as a table"), numbers(usage, view)),
    );
    if (focused?.selector) this.place.querySelector(focused.selector)?.focus({ preventScroll: true });
  }

  #set(name, value) {
    this.view[name] = value;
    this.draw();
  }

  #setPeriod(chosen) {
    const { view } = this;
    if (chosen === "custom") [view.from, view.to] = this.#range();
    view.period = chosen;
    this.dates.hidden = chosen !== "custom";
    say(this.wrong, "");
    if (chosen === "custom") {
      [this.from.value, this.to.value] = [view.from, view.to];
      this.from.max = this.to.max = dayBefore(this.#data.now, 0);
      this.from.focus();
    }
    this.draw();
  }

  #setDates() {
    const [from, to] = [this.from.value, this.to.value];
    const problem = rangeProblem(from, to, { today: dayBefore(this.#data.now, 0), most: MOST_DAYS });
    say(this.wrong, problem);
    for (const input of [this.from, this.to]) {
      if (problem) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
    if (problem) return;
    [this.view.from, this.view.to] = [from, to];
    this.draw();
  }

  #range() {
    const { period, from, to } = this.view;
    const { now } = this.#data;
    return period === "custom" ? [from, to] : [dayBefore(now, Number(period) - 1), dayBefore(now, 0)];
  }
}

/** The position of the focus, to restore it after a redraw: to the bar of a `day`, or to what a `selector` finds. */
function where(place) {
  const focus = document.activeElement;
  if (!place.contains(focus)) return null;
  const { day, series } = focus.dataset;
  if (day) return { day };
  return { selector: series === undefined ? focus.nodeName === "SUMMARY" && "summary" : `[data-series="${CSS.escape(series)}"]` };
}

/** Usage by day and route, all parts of it. */
async function daily(key, from, to) {
  const rows = [];
  for (let next = from; next; ) {
    const part = await callApi(`/credits/usage/daily?from=${next}&to=${to}`, { key });
    rows.push(...part.usage);
    next = part.next;
  }
  return rows;
}

function inWords({ from, to, count, total, before }, { measure, period }, today) {
  const name = period === "custom" || to !== today ? `${from} to ${to}` : `Last ${count} days`;
  const [credits, calls] = [fromUnits(total.credits), String(total.calls)];
  const more = before && change(total[measure], before[measure]);
  const comparing = more?.endsWith("%") ? `${more} on ` : more ? `${more} ` : "";
  const than = before && [" · ", h("span", { class: "compared" }, h("span", { class: "before-sample", "aria-hidden": "true" }), `${comparing}the ${count === 1 ? "day" : `${count} days`} before`)];
  return [h("strong", {}, name), " · ", figure(credits), ` ${plural(credits, "credit")} · ${group(calls)} ${plural(calls, "call")}`, ...(than ?? [])];
}

function numbers({ bars }, { route, key }) {
  const used = [...bars].reverse().filter(({ calls, credits }) => calls !== 0n || credits !== 0n);
  if (used.length === 0) return h("p", { class: "soft" }, "No usage in these days.");
  const columns = [{ name: "Day", head: true }, { name: "Calls", number: true }, { name: "Credits", number: true }];
  const rows = used.map((bar) => [bar.from === bar.to ? bar.to : `${bar.from} – ${bar.to}`, group(String(bar.calls)), figure(fromUnits(bar.credits))]);
  return table(["Usage by day, UTC", route, key].filter(Boolean).join(", "), columns, rows, { stacks: false, scrolls: true });
}

function firstCall() {
  return h(
    "div",
    { class: "card", id: "no-usage" },
    h("h3", {}, "No calls in the last 30 days"),
    h("p", { class: "soft" }, "A call appears here as soon as it is charged."),
    snippet([`curl -H "Authorization: Bearer $API_KEY" ${sampleUrl()}`]),
  );
}
