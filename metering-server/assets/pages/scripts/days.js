const DAY_MS = 86_400_000;

/** The UTC day that many days before a time, as YYYY-MM-DD. */
export const dayBefore = (now, back) => new Date(now.getTime() - back * DAY_MS).toISOString().slice(0, 10);
