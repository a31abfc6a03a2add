// Usage by day, split by route or by key: the five that used most by name, and the rest as one.

import { toUnits } from "/assets/decimal.js";
import { dayAfter, dayCount } from "/assets/days.js";

/** How many are shown by name. */
export const NAMED = 5;
/** The id of all others. No route and no key has it. */
export const REST = "";
/** With more days than this, a bar is a week. */
const MOST_DAYS = 120;
const WEEK = 7;

/** A route, with the model where models have their own prices. */
export const routeOf = ({ http_method: method, route_template: template, model }) => `${method} ${template}${model ? ` · ${model}` : ""}`;
/** The service counts in atoms, of which a credit has 7,200,000,000; a printed amount says exactly how many. */
const [ATOMS, UNITS] = [72n, 100n];
const nearest = (amount, by) => (amount < 0n ? amount - by / 2n : amount + by / 2n) / by;
const atomsOf = (text) => nearest(toUnits(text) * ATOMS, UNITS);
const inUnits = (atoms) => nearest(atoms * UNITS, ATOMS);

/** The id and name under which a row is counted. */
const PARTS = {
  route: (row) => [routeOf(row), routeOf(row)],
  key: ({ key_id: id, key_name: name }) => [id, name || id],
};

/** The routes and the keys in some rows, to choose from. */
export function partsOf(rows) {
  const routes = [...new Set(rows.map(routeOf))].sort();
  return { routes, keys: new Map(rows.map(PARTS.key)) };
}

/**
 * The usage from one day to another, and of the same number of days before. `rows` come from the service, with all
 * numbers as text; `by` is `route` or `key`, and `measure` is what the order is by, `credits` or `calls`. With `route`
 * or `key`, only rows of that are counted. Amounts are in units.
 */
export function split(rows, { from, to, by, measure, route = "", key = "" }) {
  const count = dayCount(from, to);
  const size = count > MOST_DAYS ? WEEK : 1;
  const length = Math.ceil(count / size);
  // The last bar is complete, and includes today.
  const barOf = (place) => length - 1 - Math.floor((count - 1 - place) / size);
  const bars = Array.from({ length }, (_, place) => ({ from: to, to: from, parts: new Map(), ...none(), before: none() }));
  for (let place = 0; place < count; place += 1) {
    const [bar, day] = [bars[barOf(place)], dayAfter(from, place)];
    if (day < bar.from) bar.from = day;
    if (day > bar.to) bar.to = day;
  }
  const [series, total, before] = [new Map(), none(), none()];
  for (const row of rows) {
    if ((route && routeOf(row) !== route) || (key && row.key_id !== key)) continue;
    const place = dayCount(from, row.day) - 1;
    const isBefore = place < 0;
    const bar = bars[barOf(isBefore ? place + count : place)];
    if (place < -count || place >= count) continue;
    const [id, name] = PARTS[by](row);
    if (!series.has(id)) series.set(id, { id, name, ...none(), before: none() });
    const one = series.get(id);
    const sums = isBefore ? [before, bar.before, one.before] : [total, bar, one, partOf(bar, id)];
    for (const sum of sums) {
      sum.calls += BigInt(row.calls);
      sum.credits += atomsOf(row.credits_used);
    }
  }
  // Added up exactly, and printed as the service does.
  const sums = [total, before, ...bars.flatMap((bar) => [bar, bar.before, ...bar.parts.values()]), ...[...series.values()].flatMap((one) => [one, one.before])];
  for (const sum of sums) sum.credits = inUnits(sum.credits);
  const ordered = [...series.values()].filter(isUsed).sort((one, other) => order(one, other, measure));
  for (const bar of bars) bar.parts = listed(bar.parts, ordered);
  return { from, to, count, by, series: ordered, bars, total, before: isUsed(before) ? before : null };
}

const none = () => ({ calls: 0n, credits: 0n });
const isUsed = ({ calls, credits }) => calls !== 0n || credits !== 0n;

function order(one, other, measure) {
  const more = (name) => (one[name] === other[name] ? 0 : one[name] > other[name] ? -1 : 1);
  return more(measure) || more("calls") || (one.name < other.name ? -1 : 1);
}

function partOf(bar, id) {
  if (!bar.parts.has(id)) bar.parts.set(id, none());
  return bar.parts.get(id);
}

/** The parts of a bar in the order of the series, each with its place, and the rest last. */
function listed(parts, ordered) {
  const named = ordered.slice(0, NAMED).flatMap(({ id, name }, place) => (parts.has(id) ? [{ id, name, place, ...parts.get(id) }] : []));
  const rest = ordered.slice(NAMED).reduce((sum, { id }) => {
    const { calls, credits } = parts.get(id) ?? none();
    return { calls: sum.calls + calls, credits: sum.credits + credits };
  }, none());
  return isUsed(rest) ? [...named, { id: REST, name: "All others", place: NAMED, ...rest }] : named;
}

/**
 * How much more one amount is than another: "+12%", or "14×" from ten times on. Null where it would be meaningless:
 * after a period without use, or with less than a hundredth of it.
 */
export function change(now, before) {
  if (before <= 0n || now > before * 100n) return null;
  if (now >= before * 10n) return `${now / before}×`;
  const tenths = ((now - before) * 1_000n) / before;
  const percent = (tenths >= 0n ? tenths + 5n : tenths - 5n) / 10n;
  return `${percent > 0n ? "+" : percent < 0n ? "−" : "±"}${percent < 0n ? -percent : percent}%`;
}
