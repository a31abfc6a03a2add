// The overview: the business of some days, and the health of the service.

import { sentence } from "/assets/api.js";
import { choice } from "/assets/choice.js";
import { admin } from "/assets/console-api.js";
import { daily, sum } from "/assets/console-daily.js";
import { health } from "/assets/console-health.js";
import { refusals } from "/assets/console-refusals.js";
import { reload } from "/assets/console-router.js";
import { sales } from "/assets/console-sales.js";
import { topAccounts, topRoutes } from "/assets/console-top.js";
import { group } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";

const WINDOWS = ["7", "30", "90"];
/** How many days are shown. It outlives leaving the view. */
let days = "30";

/** The view. */
export async function overview() {
  // Health is the most wanted when the report fails, and the report is worth showing without it.
  const [report, state] = await Promise.all([settled(admin(`/report?days=${days}`)), settled(admin("/health"))]);
  if (report.problem && state.problem) throw report.error;
  const chains = state.value?.chains ?? [];
  const period = choice("Period", WINDOWS.map((count) => [count, `${count} days`]), days, async (chosen) => {
    days = chosen;
    await reload();
    document.querySelector(`#view [data-choice="${chosen}"]`)?.focus();
  });
  const business = report.problem ? [trouble(report.problem)] : shown(report.value, chains);
  return {
    title: "Overview",
    lead: report.value && `${report.value.from} to ${report.value.to}, UTC`,
    actions: [period],
    body: [h("div", { class: "sections" }, ...business, h("div", { class: "pair" }, report.value ? refusals(report.value.refusals) : null, state.problem ? trouble(state.problem) : health(state.value)))],
  };
}

const settled = (promise) => promise.then((value) => ({ value }), (error) => ({ error, problem: sentence(error) }));

const trouble = (problem) => h("p", { class: "notice notice-bad", role: "alert" }, problem);

function shown(report, chains) {
  const tile = (title, id, value, words) => h("section", { class: "tile", "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), h("p", { class: "figure", id }, value), h("p", { class: "soft" }, words));
  const [opened, calls] = ["new_accounts", "usage_events"].map((name) => sum(report.by_day, name));
  const tiles = h(
    "div",
    { class: "tiles console-tiles" },
    tile("Sold", "sold", figure(sum(report.by_day, "credits_sold")), "credits, without reversed payments"),
    tile("Granted", "granted", figure(sum(report.by_day, "credits_granted")), "credits, corrections included"),
    tile("Used", "used", figure(sum(report.by_day, "credits_used")), `credits, in ${group(calls)} ${calls === "1" ? "call" : "calls"}`),
    tile("Accounts", "accounts", group(report.accounts), `${group(opened)} new in these days`),
  );
  return [tiles, daily(report, Number(days)), sales(report.sales, chains), h("div", { class: "pair" }, topRoutes(report.top_routes), topAccounts(report.top_accounts))];
}
