// How long a balance lasts at the recent pace. An estimate, so it is only made from enough days.

import { toUnits } from "/assets/decimal.js";

/** The complete days that the pace is taken from. */
const DAYS = 7;
/** An account needs this many complete days since its first call. */
const ENOUGH = 2;
const DAY_MS = 86_400_000;

/**
 * The text about a balance. `byDay` are the days with usage, `{day, credits_used}`, all as text; `now` is the
 * service's time, and its days are UTC days.
 */
export function runway(balance, byDay, now) {
  const left = toUnits(balance);
  if (left <= 0n) return "Used up.";
  const back = (day) => Math.round((Date.parse(now.toISOString().slice(0, 10)) - Date.parse(day)) / DAY_MS);
  const days = byDay.map(({ day, credits_used: used }) => ({ age: back(day), used: toUnits(used) })).filter(({ used }) => used > 0n);
  const sum = (some) => some.reduce((total, { used }) => total + used, 0n);
  const recent = days.filter(({ age }) => age >= 1 && age <= DAYS);
  const today = sum(days.filter(({ age }) => age === 0));
  const oldest = Math.max(0, ...days.map(({ age }) => age));
  if (days.length === 0) return "No calls yet, so no estimate of how long this lasts.";
  if (oldest < ENOUGH) return "Too early to say how long this lasts: the first calls are from today or yesterday.";
  if (recent.length === 0 && today === 0n) return `No calls in the last ${DAYS} days, so no estimate of how long this lasts.`;
  const complete = BigInt(Math.min(DAYS, oldest));
  // If today already cost more than the average, today's cost is the better estimate.
  const perDay = [sum(recent) / complete, today].reduce((most, pace) => (pace > most ? pace : most), 1n);
  return `${lasts(left / perDay)} at this pace.`;
}

function lasts(days) {
  if (days < 1n) return "Less than a day";
  if (days < 60n) return `About ${days} ${days === 1n ? "day" : "days"}`;
  if (days < 730n) return `About ${days / 30n} months`;
  return "More than two years";
}
