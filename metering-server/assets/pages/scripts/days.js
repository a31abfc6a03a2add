// UTC days, as YYYY-MM-DD, and times as they are shown.

const DAY_MS = 86_400_000;

/** The UTC day that many days before a time. */
export const dayBefore = (now, back) => new Date(now.getTime() - back * DAY_MS).toISOString().slice(0, 10);

/** The day that many days after another; before it, if the number is negative. */
export const dayAfter = (day, days) => dayBefore(new Date(`${day}T00:00:00Z`), -days);

/** The number of days from one day to another, both included. */
export const dayCount = (from, to) => Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;

/**
 * The problem with a first and a last day, in words; empty if there is none. There may be `most` days, until `today`.
 */
export function rangeProblem(from, to, { today, most = Infinity } = {}) {
  if (!from || !to) return "Choose the first and the last day.";
  if (from > to) return "The first day must not be after the last.";
  if (today && to > today) return "The last day must not be in the future.";
  return dayCount(from, to) > most ? `Choose at most ${most.toLocaleString("en")} days.` : "";
}

/** A time to the second: "2026-11-21 12:00:00". */
export const toSecond = (time) => time.slice(0, 19).replace("T", " ");

/** A time to the minute: "2026-11-21 12:00". */
export const toMinute = (time) => time.slice(0, 16).replace("T", " ");

const dayFormat = (options) => {
  const format = new Intl.DateTimeFormat("en", { timeZone: "UTC", ...options });
  return (day) => format.format(new Date(`${day}T00:00:00Z`));
};
/** "Nov 21". */
export const shortDay = dayFormat({ month: "short", day: "numeric" });
/** "Sat, Nov 21". */
export const longDay = dayFormat({ weekday: "short", month: "short", day: "numeric" });
