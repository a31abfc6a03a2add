// The requests of an account whose credits are held now.

import { admin } from "/assets/console-api.js";
import { parts } from "/assets/console-rows.js";
import { time } from "/assets/console-time.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { table } from "/assets/table.js";

const MOST = 1_000;
const COLUMNS = [{ name: "Accepted (UTC)", head: true }, { name: "Route", route: true }, { name: "Key" }, { name: "Request" }, { name: "Held", number: true }, { name: "Lease ends (UTC)" }];

/** The requests, newest first. */
export function holds({ org_id: id }) {
  return parts({
    load: async () => {
      const { requests: items } = await admin(`/accounts/${id}/requests?limit=${MOST}`);
      return { items, next: null };
    },
    empty: "No credits are held: no request is in progress whose cost is not known yet.",
    draw: (items) => table("Requests in progress", COLUMNS, items.map(row)),
    csv: {
      name: `requests-${id}`,
      columns: ["id", "created_at", "http_method", "request_path", "key_id", "held", "expires_at"],
      cells: ({ key_id: key, request }) => [request.id, request.created_at, request.http_method, request.request_path, key, request.held, request.expires_at],
    },
  });
}

function row({ key_id: key, key_name: name, request }) {
  return [
    time(request.created_at),
    `${request.http_method} ${request.request_path}`,
    [name, h("code", { class: "under" }, key)],
    h("a", { class: "mono break", href: `#/search?q=${request.id}` }, request.id),
    figure(request.held),
    time(request.expires_at),
  ];
}
