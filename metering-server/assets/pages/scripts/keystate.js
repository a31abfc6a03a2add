// A key's current status, in words: whether its next request is accepted, and if not, until when.

import { toUnits } from "/assets/decimal.js";

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
/** The status mentions the expiry if it is sooner than this. */
const SOON = 7 * DAY;

/** Whether a key's budget is used up. */
export const isUsedUp = ({ limit, limit_remaining: left }) => limit !== null && toUnits(left) <= 0n;

/** The time until a moment: "52 min", "5 h" or "3 days". */
export function until(text, now) {
  const left = Math.max(Date.parse(text) - now.getTime(), 0);
  if (left < HOUR) return `${Math.max(Math.ceil(left / MINUTE), 1)} min`;
  if (left < 2 * DAY) return `${Math.round(left / HOUR)} h`;
  return `${Math.round(left / DAY)} days`;
}

/** The text and the CSS class for a key's state. `parents` are its known parent keys, nearest first. */
export function stateOf(key, parents, now) {
  const spent = (of, whose) => `Budget${whose} used up${of.limit_resets_at ? `, resets in ${until(of.limit_resets_at, now)}` : ""}`;
  if (key.state === "leaked") return ["Leaked", "tag-bad"];
  if (key.state === "disabled") return ["Disabled", ""];
  if (key.state === "expired") return ["Expired", "tag-warn"];
  if (key.state === "parent_inactive") {
    const off = parents.find(({ state }) => state !== "active" && state !== "parent_inactive");
    return [off ? `Off, because ${off.name} is ${off.state}` : "Off, because its parent key is", "tag-warn"];
  }
  if (key.state !== "active") return [key.state, ""];
  if (isUsedUp(key)) return [spent(key, ""), "tag-warn"];
  const empty = parents.find(isUsedUp);
  if (empty) return [spent(empty, ` of ${empty.name}`), "tag-warn"];
  const ends = key.expires_at && Date.parse(key.expires_at) - now.getTime() < SOON;
  return ends ? [`Active, expires in ${until(key.expires_at, now)}`, "tag-good"] : ["Active", "tag-good"];
}
