// The overview: the business of some days, and the health of the service.

import { sentence } from "/assets/api.js";
import { choice } from "/assets/choice.js";
import { admin, query } from "/assets/console-api.js";
import { attention } from "/assets/console-attention.js";
import { change } from "/assets/console-change.js";
import { knownChains, readHealth } from "/assets/console-chains.js";
import { daily, sum } from "/assets/console-daily.js";
import { showHealth } from "/assets/console-health.js";
import { refusals } from "/assets/console-refusals.js";
import { reload } from "/assets/console-router.js";
import { added, byCurrency, sales, total } from "/assets/console-sales.js";
import { topAccounts, topRoutes } from "/assets/console-top.js";
import { unreported } from "/assets/console-unreported.js";
import { dayBefore, dayCount, rangeProblem } from "/assets/days.js";
import { group, plural } from "/assets/decimal.js";
import { byId, h, say, wait } from "/assets/dom.js";
import { figure } from "/assets/figure.js";

const WINDOWS = ["7", "30", "90"];
const CUSTOM = "custom";
/** The longest period of a report. */
const MOST_DAYS = 3_660;
/** The period on show: a number of days, or the days of `dates`. It is kept when the view is left. */
const view = { period: "30", dates: null };

/** The first and the last day that are shown. */
function range() {
  if (view.period === CUSTOM) return view.dates;
  const now = new Date();
  return { from: dayBefore(now, Number(view.period) - 1), to: dayBefore(now, 0) };
}

/** The view. The report does not wait for the health, which is slow while a chain is down. */
export async function overview() {
  const health = settled(readHealth());
  const { from, to } = range();
  const days = String(dayCount(from, to));
  const report = await settled(readReport(`/report${query({ days, until: view.period === CUSTOM ? to : undefined })}`));
  const period = choice("Period", [...WINDOWS.map((count) => [count, `${count} days`]), [CUSTOM, "Custom"]], view.period, async (chosen) => {
    if (chosen === CUSTOM) view.dates = { from, to };
    view.period = chosen;
    await reload();
    document.querySelector(chosen === CUSTOM ? "#report-from" : `#view [data-choice="${chosen}"]`)?.focus();
  });
  const [revenue, state] = [h("div", {}), h("div", { id: "health-place" }, h("p", { class: "soft", role: "status" }, "Asking the chains …"))];
  const drawRevenue = () => report.value && revenue.replaceChildren(sales(report.value, Number(days), knownChains()));
  drawRevenue();
  health.then(({ value, problem }) => {
    state.replaceChildren(value ? showHealth(value) : trouble(problem));
    // The names of chains are known now.
    drawRevenue();
  });
  const business = report.problem ? [trouble(report.problem)] : shown(report.value, revenue, days);
  if (report.value) compare(report.value, days);
  const needs = attention({ counts: report.value?.unreported, health });
  return {
    title: "Overview",
    lead: report.value && `${report.value.from} to ${report.value.to}, UTC`,
    actions: [period],
    body: [view.period === CUSTOM && datesForm(view.dates), h("div", { class: "sections" }, needs, ...business, h("div", { class: "pair" }, report.value && refusals(report.value.refusals), state), report.value && unreported(report.value.unreported))],
  };
}

/** The first and the last day, to choose. */
function datesForm({ from, to }) {
  const problem = h("p", { class: "field-error", id: "report-days-error", role: "alert", hidden: true });
  const input = (id, label, value) => h("div", { class: "field field-short" }, h("label", { for: id }, label), h("input", { id, type: "date", value, max: dayBefore(new Date(), 0), "aria-describedby": "report-days-error" }));
  const fields = [input("report-from", "From (UTC)", from), input("report-to", "To (UTC)", to)];
  const form = h("form", { class: "search-form filter-form", "aria-label": "Days", novalidate: true }, ...fields, problem);
  const [first, last] = form.querySelectorAll("input");
  const show = (event) => {
    event.preventDefault();
    say(problem, rangeProblem(first.value, last.value, { today: last.max, most: MOST_DAYS }));
    if (!problem.hidden) return;
    view.dates = { from: first.value, to: last.value };
    reload();
  };
  form.addEventListener("change", show);
  form.addEventListener("submit", show);
  return form;
}

/** The report. The service makes one report at a time, so it may be busy with another operator's. */
export async function readReport(path) {
  try {
    return await admin(path);
  } catch (error) {
    if (error.code !== "rate_limited") throw error;
    await wait(1_000 * (error.retryAfter ?? 1));
    return admin(path);
  }
}

export const settled = (promise) => promise.then((value) => ({ value }), (error) => ({ problem: sentence(error) }));

export const trouble = (problem) => h("p", { class: "notice notice-bad", role: "alert" }, problem);

/** The value that each tile compares with the period before, by its id. */
const COMPARED = { sold: "credits_sold", granted: "credits_granted", used: "credits_used", accounts: "new_accounts" };

/**
 * Shows the change in each tile, once the report of the period before has arrived. The tiles are complete without it.
 */
async function compare(report, count) {
  const until = dayBefore(new Date(`${report.from}T00:00:00Z`), 1);
  const before = await readReport(`/report?days=${count}&until=${until}`).catch(() => null);
  // Another period may have been chosen meanwhile.
  if (!before || count !== String(dayCount(range().from, range().to))) return;
  for (const [id, name] of Object.entries(COMPARED)) {
    const place = byId(`${id}-change`);
    const words = change(sum(report.by_day, name), sum(before.by_day, name), count);
    if (place) place.textContent = id === "accounts" ? `New accounts: ${words[0].toLowerCase()}${words.slice(1)}` : words;
  }
  const earlier = byCurrency(before.values);
  for (const [currency, values] of byCurrency(report.values)) {
    const place = byId(`revenue-${currency}-change`);
    if (place) place.textContent = change(added(values), added(earlier.get(currency) ?? []), count);
  }
}

function shown(report, revenue, days) {
  const tile = (title, id, value, words) => h("section", { class: "tile", "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), h("p", { class: "figure", id }, value), h("p", { class: "soft" }, words), h("p", { class: "soft change", id: `${id}-change` }));
  const [opened, calls] = ["new_accounts", "usage_events"].map((name) => sum(report.by_day, name));
  const earned = [...byCurrency(report.values)].map(([currency, values]) => {
    const payments = String(total(values));
    return tile(`Revenue in ${currency}`, `revenue-${currency}`, `${group(added(values))} ${currency}`, `in ${group(payments)} ${plural(payments, "payment")} with a value`);
  });
  const tiles = h(
    "div",
    { class: "tiles console-tiles" },
    ...earned,
    tile("Sold", "sold", figure(sum(report.by_day, "credits_sold")), "credits, without reversed payments"),
    tile("Net grants", "granted", figure(sum(report.by_day, "credits_granted")), "credits granted, less corrections"),
    tile("Used", "used", figure(sum(report.by_day, "credits_used")), `credits, in ${group(calls)} ${calls === "1" ? "call" : "calls"}`),
    tile("Accounts", "accounts", group(report.accounts), `${group(opened)} new in these days`),
  );
  return [tiles, daily(report, Number(days)), revenue, h("div", { class: "pair" }, topRoutes(report.top_routes), topAccounts(report.top_accounts))];
}
