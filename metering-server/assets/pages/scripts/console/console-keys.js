// The keys of an account: what they may spend, and when they were last used.

import { admin, query } from "/assets/console-api.js";
import { parts } from "/assets/console-rows.js";
import { keyTable } from "/assets/keyrow.js";
import { treeOf } from "/assets/keytree.js";

const CSV = ["id", "name", "parent_id", "state", "limit", "limit_remaining", "limit_reset", "usage", "usage_monthly", "usage_daily", "last_used_at", "created_at", "expires_at", "scopes", "hint"];

/** The keys, oldest first: a child is below its parent. Deleted ones are left out. */
export function keys({ org_id: id }) {
  return parts({
    load: async (after) => {
      const { data: items, next } = await admin(`/accounts/${id}/keys${query({ after, limit: 100 })}`);
      return { items, next };
    },
    empty: "The account has no key.",
    more: "Show newer keys",
    draw: (items) => keyTable(treeOf(items), { now: new Date() }),
    csv: { name: `keys-${id}`, columns: CSV, cells: (key) => CSV.map((column) => (column === "scopes" ? key.scopes.join(" ") : key[column])) },
  });
}
