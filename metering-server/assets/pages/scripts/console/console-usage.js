// An account's usage: by day and by route, and the newest changes of its balance.

import { activity } from "/assets/activity.js";
import { admin } from "/assets/console-api.js";
import { daily } from "/assets/console-daily.js";
import { topRoutes } from "/assets/console-top.js";
import { h } from "/assets/dom.js";

const DAYS = 30;

/** The usage of the last 30 days. */
export async function usage({ org_id: id }) {
  const [summary, recent] = await Promise.all([admin(`/accounts/${id}/usage?days=${DAYS}`), admin(`/accounts/${id}/activity?limit=50`)]);
  // The window ends today. If this computer's clock is behind, the newest day with usage is later.
  const today = new Date().toISOString().slice(0, 10);
  const newest = summary.by_day[0]?.day ?? today;
  const to = newest > today ? newest : today;
  const days = summary.by_day.map((entry) => ({ ...entry, credits_sold: "0", credits_granted: "0", new_accounts: "0" }));
  return h("div", { class: "sections" }, daily({ by_day: days, to }, DAYS, ["credits_used", "usage_events"]), topRoutes(summary.by_endpoint), activity(recent));
}
