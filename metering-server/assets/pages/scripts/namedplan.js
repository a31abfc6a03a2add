// The plan in the URL of a page: the visitor chose to buy it. It is kept while they sign up and sign in, until
// its payment opens.

import { rememberPlan } from "/assets/session.js";

const PLAN = /^\d{1,20}\/[A-Za-z0-9._-]{1,64}$/;

/** Keeps the plan in this page's URL. Then removes it from the URL: a reload must not buy it again. */
export function keepNamedPlan() {
  const named = new URLSearchParams(location.search).get("plan");
  if (named === null) return;
  if (PLAN.test(named)) rememberPlan(named);
  history.replaceState(null, "", location.pathname + location.hash);
}
