// The recent activity of an account, by key, route and day, as far back as the service keeps it.

import { activitySection, activityTable } from "/assets/activity.js";
import { callApi, sentence } from "/assets/api.js";
import { rangeProblem } from "/assets/days.js";
import { busy, h, say } from "/assets/dom.js";
import { UsageFilter } from "/assets/usagefilter.js";

/** How many entries to request at once. */
const PAGE = 50;
/** The maximum that the service returns at once. */
const MOST = 1_000;
/** How many rows are shown at first. */
const FIRST = 8;

/**
 * The section. `view` has the route and the key that were chosen, which the chart shares, and the first and the last day.
 * `filtered()` is called when the route or the key changes.
 */
export class ActivityList {
  #key = null;
  #entries = [];
  #next = null;
  #shown = FIRST;
  #names = null;
  /** The list requested last. */
  #turn = 0;

  constructor(view, { filtered }) {
    this.view = view;
    this.filter = new UsageFilter("activity", view, filtered);
    const date = (name, label) => h("input", { type: "date", id: `activity-${name}`, on: { change: () => this.#setDates() }, "aria-label": label });
    [this.from, this.to] = [date("from", "From day"), date("to", "To day")];
    this.clear = h("button", { class: "button button-quiet button-small", type: "button", id: "activity-clear", hidden: true, on: { click: () => this.#clear(filtered) } }, "Clear filters");
    this.wrong = h("p", { class: "field-error", role: "alert", id: "activity-error", hidden: true });
    this.place = h("div", {});
    this.choices = h("div", { class: "chart-choices" }, this.filter.route, this.filter.key, h("div", { class: "dates" }, this.from, h("span", { "aria-hidden": "true" }, "–"), this.to), this.clear);
    this.filter.show({ routes: [], keys: new Map() });
    this.element = activitySection(this.choices, this.wrong, this.place);
  }

  /** Shows what was loaded, or loads it again if more than that is shown. `activity` has the newest entries. */
  async update({ key, activity }) {
    this.#key = key;
    if (this.#isFiltered() || this.#entries.length > activity.transactions.length) {
      await this.load();
      return;
    }
    this.#turn += 1;
    [this.#entries, this.#next] = [activity.transactions, activity.next ?? null];
    this.#draw();
  }

  /** The routes and keys to choose from. */
  known(parts) {
    this.filter.show(parts);
    this.#names = parts.keys.size > 1 ? parts.keys : null;
    this.#draw();
  }

  /** Shows the entries of one day, or of some. */
  showDays(from, to) {
    Object.assign(this.view, { activityFrom: from, activityTo: to });
    [this.from.value, this.to.value] = [from, to];
    return this.load();
  }

  /** Loads at least as many entries as are shown, with the current filters. */
  async load() {
    const count = Math.min(Math.max(this.#shown, PAGE), MOST);
    const turn = (this.#turn += 1);
    this.place.setAttribute("aria-busy", "true");
    try {
      const { transactions, next } = await callApi(this.#path(count), { key: this.#key });
      if (turn !== this.#turn) return;
      say(this.wrong, "");
      [this.#entries, this.#next] = [transactions, next];
      this.#draw();
    } catch (error) {
      if (turn === this.#turn) say(this.wrong, Object.values(error.fields ?? {})[0] ? "These filters are not valid." : sentence(error));
    } finally {
      if (turn === this.#turn) this.place.removeAttribute("aria-busy");
    }
  }

  #isFiltered() {
    const { route, key, activityFrom: from, activityTo: to } = this.view;
    return Boolean(route || key || from || to);
  }

  #path(limit, before = null) {
    const { route: chosen, key, activityFrom: from, activityTo: to } = this.view;
    const [route, model] = chosen.split(" · ");
    const given = Object.entries({ limit, route, model, key, from, to, before }).filter(([, value]) => value);
    return `/credits/usage?${given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`;
  }

  #setDates() {
    const [from, to] = [this.from.value, this.to.value];
    const problem = from && to ? rangeProblem(from, to) : "";
    say(this.wrong, problem);
    if (!problem) this.showDays(from, to);
  }

  #clear(filtered) {
    Object.assign(this.view, { route: "", key: "", activityFrom: "", activityTo: "" });
    [this.from.value, this.to.value] = ["", ""];
    this.filter.route.focus();
    filtered();
  }

  #draw() {
    this.clear.hidden = !this.#isFiltered();
    this.choices.hidden = this.#entries.length === 0 && !this.#isFiltered();
    if (this.#entries.length === 0) {
      this.place.replaceChildren(h("p", { class: "soft", id: "no-activity" }, this.#isFiltered() ? "No activity with these filters." : "No activity yet."));
      return;
    }
    const hadFocus = this.place.querySelector(".table-more") === document.activeElement;
    const rows = this.#entries.slice(0, this.#shown);
    this.place.replaceChildren(activityTable(rows, this.#names), ...this.#foot());
    if (hadFocus) this.place.querySelector(".table-more")?.focus({ preventScroll: true });
  }

  #foot() {
    const isMore = this.#shown < this.#entries.length;
    if (!isMore && !this.#next) return this.#shown > FIRST ? [h("p", { class: "soft", id: "activity-end" }, "This is all that the service keeps. The downloads have all usage by day, and the whole ledger.")] : [];
    const more = h("button", { class: "button button-quiet button-small table-more", type: "button", id: "more-activity" }, isMore && !this.#next ? `Show all ${this.#entries.length}` : "Show more");
    more.addEventListener("click", () => busy(more, () => this.#more()));
    return [more];
  }

  async #more() {
    const before = this.#entries[Math.min(this.#shown, this.#entries.length) - 1];
    if (this.#shown >= this.#entries.length) {
      const turn = this.#turn;
      try {
        const { transactions, next } = await callApi(this.#path(PAGE, this.#next), { key: this.#key });
        if (turn !== this.#turn) return;
        this.#entries.push(...transactions);
        this.#next = next;
      } catch (error) {
        if (turn !== this.#turn) return;
        if (error.fields?.before) await this.load();
        else say(this.wrong, sentence(error));
        return;
      }
    }
    this.#shown = this.#entries.length;
    this.#draw();
    // Keyboard focus moves to the first new row.
    const place = this.#entries.indexOf(before) + 1;
    const row = this.place.querySelectorAll("tbody tr")[place];
    row?.setAttribute("tabindex", "-1");
    row?.focus({ preventScroll: true });
  }
}
