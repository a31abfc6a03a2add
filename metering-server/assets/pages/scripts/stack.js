// Usage by day as stacked bars. The pointer and the arrow keys show a bar's parts; a click or Enter chooses one.

import { longDay, shortDay } from "/assets/days.js";
import { PLACES, fromUnits, group, plural } from "/assets/decimal.js";
import { h, s } from "/assets/dom.js";
import { rounded } from "/assets/figure.js";
import { heightOf, scale } from "/assets/scale.js";

const ABOVE = 12;
const BELOW = 26;
const HATCH = "today-hatch";

/** An amount of the measure, which is in units, as a rounded text. */
export const amountOf = (units, measure) => (measure === "credits" ? group(rounded(fromUnits(units))) : group(String(units)));
const inUnits = (units, measure) => `${amountOf(units, measure)} ${plural(measure === "credits" ? fromUnits(units) : String(units), measure.slice(0, -1))}`;
/** A bar's day, or its days. */
const nameOf = (bar) => (bar.from === bar.to ? longDay(bar.from) : `${shortDay(bar.from)} – ${shortDay(bar.to)}`);
/** The colour square of a series. */
export const swatch = (place) => h("span", { class: `swatch series-${place}`, "aria-hidden": "true" });

/**
 * The chart of a `split` by `measure`. `today` is not over yet. `choose({ part, bar })` is called with the part of a bar
 * that was chosen, or without a part for the whole bar. The bar of the day `focus` gets the focus.
 */
export class Stack {
  #bars = [];
  /** The bar that is shown, and which of its parts. */
  #here = null;
  #part = null;
  /** The bar that was shown before a press. */
  #before = null;

  constructor(usage, { measure, today, choose, focus = null }) {
    Object.assign(this, { usage, measure, today, choose, focus });
    this.svg = s("svg", { class: "chart stacked", role: "group", "aria-label": this.#words() });
    this.tip = h("div", { class: "chart-tip", "aria-hidden": "true", hidden: true });
    this.said = h("p", { class: "quietly-there", role: "status" });
    this.element = h("div", { class: "chart-body" }, this.svg, this.tip, this.said);
    new ResizeObserver(() => this.#plot()).observe(this.element);
    this.svg.addEventListener("pointermove", (event) => event.pointerType !== "touch" && this.#point(event));
    this.svg.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && this.#leave());
    // A press gives the focus to a bar, which shows it.
    this.svg.addEventListener("pointerdown", () => {
      this.#before = this.#here;
    });
    this.svg.addEventListener("click", (event) => this.#click(event));
    this.svg.addEventListener("keydown", (event) => this.#press(event));
    this.svg.addEventListener("focusin", ({ target }) => this.#show(this.#bars.indexOf(target.closest(".day"))));
    this.svg.addEventListener("focusout", () => this.#leave());
  }

  #words() {
    const { measure, usage } = this;
    const busiest = usage.bars.reduce((most, bar) => (bar[measure] > most[measure] ? bar : most));
    const most = busiest[measure] > 0n ? ` Most on ${nameOf(busiest)}: ${amountOf(busiest[measure], measure)}.` : "";
    return `Bar chart of ${measure} by day, ${usage.count} days, in total ${inUnits(usage.total[measure], measure)}.${most} Arrow keys move between bars and their parts; Enter filters.`;
  }

  #plot() {
    const { bars } = this.usage;
    const focused = this.focus ? bars.findIndex((bar) => bar.to === this.focus) : this.#bars.indexOf(document.activeElement);
    this.focus = null;
    const [here, part] = [this.#here, this.#part];
    const [width, tall] = [Math.max(this.svg.clientWidth, 200), Math.max(this.svg.clientHeight, 120)];
    this.svg.setAttribute("viewBox", `0 0 ${width} ${tall}`);
    const { measure } = this;
    const places = measure === "credits" ? PLACES : 0;
    const most = bars.flatMap((bar) => [bar[measure], bar.before[measure]]).reduce((one, other) => (other > one ? other : one), 0n);
    const { top, ticks } = scale(most, 10n ** BigInt(places));
    const labels = ticks.map((tick) => group(fromUnits(tick, places)));
    const left = Math.max(...labels.map((label) => label.length)) * 7 + 12;
    const floor = tall - BELOW;
    const y = (amount) => floor - heightOf(amount, top, floor - ABOVE);
    const step = (width - left) / bars.length;
    const thick = Math.max(Math.min(step * 0.72, 32), 1.5);
    // A line between parts would hide small ones.
    this.svg.classList.toggle("thin", thick < 5);
    const x = (index) => left + index * step;
    const grid = ticks.map((tick, index) => [
      s("line", { class: index === 0 ? "base" : "grid", x1: left, x2: width, y1: y(tick), y2: y(tick) }),
      s("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end", "aria-hidden": "true" }, labels[index]),
    ]);
    const current = focused >= 0 ? focused : Math.max(0, this.#tabStop());
    this.#bars = bars.map((bar, index) => this.#bar(bar, { x: x(index), step, thick, y, floor, tabStop: index === current }));
    const every = Math.ceil(72 / step);
    const dates = bars.map((bar, index) => {
      if ((bars.length - 1 - index) % every !== 0) return null;
      const isLast = x(index + 0.5) > width - 24;
      return s("text", { x: isLast ? width : x(index + 0.5), y: tall - 6, "text-anchor": isLast ? "end" : "middle", "aria-hidden": "true" }, shortDay(bar.to));
    });
    const before = this.usage.before ? [s("path", { class: "before", d: bars.map((bar, index) => `${index === 0 ? "M" : "L"}${x(index)} ${y(bar.before[measure])}H${x(index + 1)}`).join("") })] : [];
    this.svg.replaceChildren(hatch(), ...grid.flat(), ...this.#bars, ...before, ...dates.filter(Boolean));
    this.#geometry = { left, step, width };
    if (focused >= 0) this.#bars[focused]?.focus({ preventScroll: true });
    if (here !== null) this.#show(here, part);
  }

  #geometry = { left: 0, step: 1, width: 200 };

  /** The place of the bar that Tab goes to: the last one at first. */
  #tabStop() {
    const known = this.#bars.findIndex((bar) => bar.getAttribute("tabindex") === "0");
    return known >= 0 ? known : this.usage.bars.length - 1;
  }

  #bar(bar, { x, step, thick, y, floor, tabStop }) {
    const { measure } = this;
    let sum = 0n;
    const rects = bar.parts.filter((part) => part[measure] > 0n).map((part) => {
      const from = y(sum);
      sum += part[measure];
      return s("rect", { class: `part series-${part.place}`, "data-part": part.id, x: x + (step - thick) / 2, y: y(sum), width: thick, height: Math.max(from - y(sum), 0.5) });
    });
    const isOpen = this.#isOpen(bar);
    const over = isOpen && sum > 0n ? [s("rect", { class: "hatched", x: x + (step - thick) / 2, y: y(sum), width: thick, height: Math.max(floor - y(sum), 0.5), fill: `url(#${HATCH})` })] : [];
    const label = `${nameOf(bar)}${isOpen ? ", not over yet" : ""}: ${inUnits(bar.credits, "credits")}, ${inUnits(bar.calls, "calls")}. ${bar.parts.map((part) => `${part.name}: ${amountOf(part[measure], measure)}`).join("; ")}`.trim();
    return s("g", { class: "day", role: "button", tabindex: tabStop ? "0" : "-1", "data-day": bar.to, "aria-label": label }, s("rect", { class: "zone", x, y: 0, width: step, height: floor }), ...rects, ...over);
  }

  #isOpen = (bar) => bar.to >= this.today;

  /** The bar and the part under a pointer. */
  #under({ clientX, target }) {
    const place = this.svg.getBoundingClientRect();
    const { left, step, width } = this.#geometry;
    const index = Math.floor((((clientX - place.left) * width) / place.width - left) / step);
    return { index: index in this.#bars ? index : -1, part: target.dataset?.part ?? null };
  }

  #point(event) {
    const { index, part } = this.#under(event);
    this.#show(index, part);
  }

  #click(event) {
    // A screen reader's click has no position.
    const { index, part } = event.detail === 0 ? { index: this.#bars.indexOf(event.target.closest(".day")), part: null } : this.#under(event);
    if (index < 0) return;
    // The first tap shows the bar's parts, like hovering with a mouse.
    const isFirst = event.pointerType === "touch" && this.#before !== index;
    this.#show(index, part);
    if (!isFirst) this.#chosen();
  }

  #chosen() {
    const bar = this.usage.bars[this.#here];
    if (bar) this.choose({ bar, part: bar.parts.find(({ id }) => id === this.#part) ?? null });
  }

  #press(event) {
    const index = this.#bars.indexOf(document.activeElement);
    if (index < 0) return;
    const moves = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: this.#bars.length - 1 };
    if (event.key in moves) {
      const to = Math.min(Math.max(moves[event.key], 0), this.#bars.length - 1);
      this.#bars[index].setAttribute("tabindex", "-1");
      this.#bars[to].setAttribute("tabindex", "0");
      this.#bars[to].focus();
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      this.#step(index, event.key === "ArrowUp" ? 1 : -1);
    } else if (event.key === "Enter" || event.key === " ") {
      this.#show(index, this.#part);
      this.#chosen();
    } else if (event.key === "Escape") {
      this.#leave();
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Moves to the part above or below, and announces it. Below the lowest is the whole bar. */
  #step(index, by) {
    const { parts } = this.usage.bars[index];
    const place = parts.findIndex(({ id }) => id === this.#part) + by;
    const part = parts[Math.min(place, parts.length - 1)] ?? null;
    this.#show(index, place < 0 ? null : (part?.id ?? null));
    this.said.textContent = part && place >= 0 ? `${part.name}: ${inUnits(part.credits, "credits")}, ${inUnits(part.calls, "calls")}` : nameOf(this.usage.bars[index]);
  }

  #leave() {
    this.#show(-1);
  }

  #show(index, part = null) {
    this.#bars[this.#here]?.classList.remove("here");
    [this.#here, this.#part] = index < 0 ? [null, null] : [index, part];
    for (const rect of this.svg.querySelectorAll(".part.chosen")) rect.classList.remove("chosen");
    this.tip.hidden = index < 0;
    if (index < 0) return;
    const element = this.#bars[index];
    element.classList.add("here");
    if (part !== null) element.querySelector(`[data-part="${CSS.escape(part)}"]`)?.classList.add("chosen");
    this.#fill(this.usage.bars[index]);
    const { left, step, width } = this.#geometry;
    const middle = left + (index + 0.5) * step;
    const [room, size] = [this.svg.clientWidth, this.tip.offsetWidth];
    // Beside the bar, so that it stays visible; on the side that has room.
    const beside = middle + step / 2 + 8;
    const at = beside + size <= room ? beside : middle - step / 2 - 8 - size;
    this.tip.style.setProperty("left", `${Math.min(Math.max(at * (room / width), 0), Math.max(room - size, 0))}px`);
  }

  #fill(bar) {
    const { measure, usage } = this;
    const lines = [...bar.parts].reverse().map((part) => h("li", { class: part.id === this.#part ? "chosen" : null }, swatch(part.place), h("span", { class: "tip-name" }, part.name), h("span", { class: "tip-amount" }, amountOf(part[measure], measure))));
    const before = usage.before && h("p", { class: "tip-before" }, `${usage.count === 1 ? "The day" : `${usage.count} days`} before: ${inUnits(bar.before[measure], measure)}`);
    this.tip.replaceChildren(
      h("p", { class: "tip-day" }, nameOf(bar), this.#isOpen(bar) ? " so far" : ""),
      h("p", {}, `${inUnits(bar.credits, "credits")} · ${inUnits(bar.calls, "calls")}`),
      ...(lines.length > 0 ? [h("ul", {}, ...lines)] : []),
      ...(before ? [before] : []),
    );
  }
}

/** Stripes over a bar that still grows. */
function hatch() {
  const line = s("path", { d: "M-1 7L7 -1M-1 1L1 -1M5 7L7 5", class: "hatch" });
  return s("defs", {}, s("pattern", { id: HATCH, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, line));
}
