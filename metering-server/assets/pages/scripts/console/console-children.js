// The child accounts of an account, or its parent: a child has no children.

import { accountTable } from "/assets/console-accounts.js";
import { admin, query } from "/assets/console-api.js";
import { parts } from "/assets/console-rows.js";
import { h } from "/assets/dom.js";

/** The children with their balances, oldest first, and a link to the parent. */
export async function children({ org_id: id }) {
  let parent = null;
  const list = await parts({
    load: async (after) => {
      const part = await admin(`/accounts/${id}/children${query({ after, limit: 100 })}`);
      parent = part.parent;
      return { items: part.accounts, next: part.next };
    },
    empty: "The account has no child accounts.",
    more: "Show newer accounts",
    draw: accountTable,
  });
  if (!parent) return list;
  return h("p", { id: "parent" }, "A child account of ", h("a", { href: `#/accounts/${parent.org_id}` }, parent.agent_name), ".");
}
