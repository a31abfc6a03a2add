// Usage over time: a chart of credits or calls by day, of all routes or one, with its table and a download.

import { callApi, sentence } from "/assets/api.js";
import { chart } from "/assets/chart.js";
import { choice } from "/assets/choice.js";
import { dayBefore } from "/assets/days.js";
import { fromUnits, group, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { downloadButton } from "/assets/download.js";
import { figure } from "/assets/figure.js";
import { sampleUrl, snippet } from "/assets/secret.js";
import { table } from "/assets/table.js";

const WINDOWS = [7, 30, 90];
const MEASURES = { credits: "Credits", calls: "Calls" };

/** The section. `view` is what the user chose; `reload` fetches the data of another window. */
export function trend({ key, summary, now, view, reload }) {
  const section = h("section", { "aria-labelledby": "by-day-title", id: "trend" });
  const [from, to] = [dayBefore(now, view.days - 1), dayBefore(now, 0)];
  const routes = summary.by_endpoint.map((entry) => `${entry.http_method} ${entry.route_template}`);
  if (!routes.includes(view.route)) view.route = "";
  const title = h("h2", { id: "by-day-title" }, "Usage");
  if (summary.by_day.length === 0 && view.days === 30) {
    section.append(h("div", { class: "section-head" }, title), firstCall());
    return section;
  }
  const place = h("div", {});
  let rows = null;
  const draw = async () => {
    place.setAttribute("aria-busy", "true");
    try {
      if (view.route) rows ??= await daily(key, from, to);
      const drawn = view.route ? ofRoute(rows, view.route) : ofSummary(summary);
      place.replaceChildren(...content(drawn, view, now));
    } catch (error) {
      place.replaceChildren(h("p", { class: "notice notice-bad", role: "alert" }, sentence(error)));
    } finally {
      place.removeAttribute("aria-busy");
    }
  };
  const days = choice("Period", WINDOWS.map((count) => [String(count), `${count} days`]), String(view.days), async (chosen) => {
    view.days = Number(chosen);
    await reload();
    document.querySelector(`#trend [data-choice="${chosen}"]`)?.focus();
  });
  const measures = choice("Measure", Object.entries(MEASURES), view.measure, (chosen) => {
    view.measure = chosen;
    draw();
  });
  const route = h("select", { "aria-label": "Route" }, h("option", { value: "" }, "All routes"), ...routes.map((name) => h("option", { value: name, selected: name === view.route }, name)));
  route.addEventListener("change", () => {
    view.route = route.value;
    draw();
  });
  const file = downloadButton("Usage (CSV)", `usage-${from}-${to}.csv`, { key }, () => `/credits/usage.csv?from=${from}&to=${to}`);
  section.append(h("div", { class: "section-head" }, title, file), h("div", { class: "chart-choices" }, days, measures, route), place);
  draw();
  return section;
}

/** Each day's calls and credits as text, by day, and their total. */
function ofSummary({ by_day: byDay, totals }) {
  const known = new Map(byDay.map((entry) => [entry.day, { calls: entry.usage_events, credits: entry.credits_used }]));
  return { known, total: { calls: totals.usage_events, credits: totals.credits_used } };
}

function ofRoute(rows, route) {
  const [known, total] = [new Map(), { calls: 0n, credits: 0n }];
  for (const row of rows) {
    if (`${row.http_method} ${row.route_template}` !== route) continue;
    const sum = known.get(row.day) ?? { calls: 0n, credits: 0n };
    for (const part of [sum, total]) {
      part.calls += BigInt(row.calls);
      part.credits += toUnits(row.credits_used);
    }
    known.set(row.day, sum);
  }
  const text = ({ calls, credits }) => ({ calls: String(calls), credits: fromUnits(credits) });
  return { known: new Map([...known].map(([day, sum]) => [day, text(sum)])), total: text(total) };
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

function content({ known, total }, view, now) {
  const days = Array.from({ length: view.days }, (_, place) => {
    const day = dayBefore(now, view.days - 1 - place);
    return { day, calls: "0", credits: "0", ...known.get(day) };
  });
  const columns = [{ name: "Day", head: true }, { name: "Calls", number: true }, { name: "Credits", number: true }];
  const cells = [...days].reverse().filter(({ day }) => known.has(day)).map((day) => [day.day, group(day.calls), figure(day.credits)]);
  const caption = `Usage by day, last ${view.days} days, UTC${view.route ? `, ${view.route}` : ""}`;
  const list = cells.length > 0 ? table(caption, columns, cells, { stacks: false, scrolls: true }) : h("p", { class: "soft" }, "No usage in these days.");
  return [chart(days, total, view.measure), h("details", { class: "table-details" }, h("summary", {}, "Show as a table"), list)];
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
