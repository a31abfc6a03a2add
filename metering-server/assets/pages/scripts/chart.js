// Amounts by day, as a bar chart. For screen readers it is a single image; the table below it has the same numbers.

import { dayBefore, longDay, shortDay } from "/assets/days.js";
import { PLACES, fromUnits, group, plural, toUnits } from "/assets/decimal.js";
import { h, s } from "/assets/dom.js";
import { figure, rounded } from "/assets/figure.js";
import { heightOf, scale } from "/assets/scale.js";

const ABOVE = 12;
const BELOW = 26;

/**
 * A frame with the chart of `days`, oldest first: `{day, calls, credits}`, all as text. Bars show `measure`, calls or
 * credits. `total` is the exact total: amounts per day are rounded, so their sum would differ from it. `what` names the
 * amounts, and `read` returns the nodes for a day's name and its amounts.
 */
export function chart(days, total, measure = "credits", { read = usage, what = measure } = {}) {
  const reading = h("p", { class: "chart-reading soft" });
  const svg = s("svg", { class: "chart", role: "img", "aria-label": inWords(days, total, measure, what) });
  const frame = h("div", { class: "chart-frame" }, reading, svg);
  const all = spanOf(days);
  const one = (day) => read(`${longDay(day.day)}${isOpen(day) ? " so far" : ""}`, day);
  const draw = () => plot(svg, days, measure, (day) => reading.replaceChildren(...(day ? one(day) : read(all, total))));
  reading.replaceChildren(...read(all, total));
  new ResizeObserver(draw).observe(frame);
  return frame;
}

/** Whether a day is not over. */
const isOpen = ({ day }) => day >= dayBefore(new Date(), 0);

const spanOf = (days) => (isOpen(days.at(-1)) ? `Last ${days.length} days` : `${shortDay(days[0].day)} to ${shortDay(days.at(-1).day)}`);

function usage(name, { credits, calls }) {
  return [h("strong", {}, name), " · ", figure(credits), ` ${plural(credits, "credit")} · ${group(calls)} ${plural(calls, "call")}`];
}

function inWords(days, total, measure, what) {
  const unit = what === measure ? ` ${plural(total[measure], measure.slice(0, -1))}` : "";
  const text = (amount) => group(measure === "credits" ? rounded(amount) : amount);
  const busiest = days.reduce((most, day) => (toUnits(day[measure]) > toUnits(most[measure]) ? day : most));
  const most = toUnits(busiest[measure]) > 0n ? ` Most on ${longDay(busiest.day)}: ${text(busiest[measure])}.` : "";
  return `Bar chart of ${what} by day, ${spanOf(days).replace("Last", "last")}${isOpen(days.at(-1)) ? "; today is not over" : ""}. Total: ${text(total[measure])}${unit}.${most} The table below has the numbers.`;
}

function plot(svg, days, measure, show) {
  const width = Math.max(svg.clientWidth, 200);
  const tall = Math.max(svg.clientHeight, 120);
  svg.setAttribute("viewBox", `0 0 ${width} ${tall}`);
  const places = measure === "credits" ? PLACES : 0;
  const values = days.map((day) => toUnits(day[measure], places));
  const { top, ticks } = scale(values.reduce((most, value) => (value > most ? value : most), 0n), 10n ** BigInt(places));
  const labels = ticks.map((tick) => group(fromUnits(tick, places)));
  const left = Math.max(...labels.map((label) => label.length)) * 7 + 12;
  const floor = tall - BELOW;
  const height = (value) => heightOf(value, top, floor - ABOVE);
  const step = (width - left) / days.length;
  const bar = Math.max(Math.min(step * 0.7, 28), 2);

  const grid = ticks.map((tick, index) => {
    const y = floor - height(tick);
    return [
      s("line", { class: index === 0 ? "base" : "grid", x1: left, x2: width, y1: y, y2: y }),
      s("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, labels[index]),
    ];
  });
  const zones = [];
  const columns = days.map((day, index) => {
    const x = left + index * step;
    const zone = s("rect", { class: "zone", x, y: 0, width: step, height: floor });
    zones.push(zone);
    const parts = [zone];
    if (values[index] > 0n) {
      const size = Math.max(height(values[index]), 2);
      parts.push(s("rect", { class: isOpen(day) ? "bar open" : "bar", x: x + (step - bar) / 2, y: floor - size, width: bar, height: size, rx: Math.min(3, bar / 4) }));
    }
    return parts;
  });
  const every = Math.ceil(72 / step);
  const dates = days.map((day, index) => {
    const back = days.length - 1 - index;
    if (back % every !== 0) return null;
    const x = left + (index + 0.5) * step;
    const end = x > width - 24;
    return s("text", { x: end ? width : x, y: tall - 6, "text-anchor": end ? "end" : "middle" }, shortDay(day.day));
  });
  svg.replaceChildren(...grid.flat(), ...columns.flat(), ...dates.filter(Boolean));
  follow(svg, zones, (index) => show(index === null ? null : days[index]), { left, step });
}

/** Calls `show` with the day under the pointer, and with null when the pointer leaves. */
function follow(svg, zones, show, { left, step }) {
  const leave = () => {
    for (const zone of zones) zone.classList.remove("here");
    show(null);
  };
  const move = (event) => {
    const scale = svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
    const index = Math.floor(((event.clientX - svg.getBoundingClientRect().left) * scale - left) / step);
    leave();
    if (!zones[index]) return;
    zones[index].classList.add("here");
    show(index);
  };
  svg.onpointermove = move;
  svg.onpointerdown = move;
  svg.onpointerleave = leave;
}
