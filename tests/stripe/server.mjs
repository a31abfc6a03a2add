// A server for tests that behaves as Stripe's API documents (docs.stripe.com/api, read in November 2026), for the requests
// that the service makes; and Stripe's own library, which signs events.
//
// Its argument is the secret key that it accepts. It prints its port, and ends with its input. Requests with
// JSON to /test/... do what a customer, a bank or a person in Stripe's dashboard would do; see the handlers.

import { randomBytes } from "node:crypto";
import http from "node:http";
import { createRequire } from "node:module";

// The packages of all clients are installed in tests/clients.
const Stripe = createRequire(new URL("../clients/package.json", import.meta.url))("stripe");

const key = process.argv[2];
const stripe = new Stripe(key);
const id = (prefix) => `${prefix}_${randomBytes(12).toString("hex")}`;
const sessions = new Map();
const refunds = [];
/** Disputes as they are now; their events may have an earlier state. */
const disputes = new Map();
/** The responses to requests with an idempotency key, which are the same for a day. */
const answered = new Map();
/** The requests to fail with this status, before others are answered. */
let failures = [];

class Refused extends Error {
  constructor(status, type, message) {
    super(message);
    Object.assign(this, { status, type });
  }
}

const invalid = (message) => new Refused(400, "invalid_request_error", message);

/** The parameters of a session that the service may send. Stripe refuses those that it does not know. */
const KNOWN =
  /^(mode|success_url|cancel_url|client_reference_id|adaptive_pricing\[enabled\]|metadata\[\w+\]|payment_intent_data\[metadata\]\[\w+\]|line_items\[0\]\[(quantity|price_data\]\[(currency|unit_amount|product_data\]\[name))\])$/;

function createSession(form) {
  for (const name of form.keys()) if (!KNOWN.test(name)) throw invalid(`Received unknown parameter: ${name}`);
  const required = (name) => form.get(name) ?? (() => { throw invalid(`Missing required param: ${name}.`); })();
  if (required("mode") !== "payment") throw invalid("Invalid mode");
  for (const name of ["success_url", "cancel_url"]) if (!URL.canParse(required(name))) throw invalid("Not a valid URL");
  const currency = required("line_items[0][price_data][currency]");
  if (!/^[a-z]{3}$/.test(currency)) throw invalid(`Invalid currency: ${currency}`);
  const unit = Number(required("line_items[0][price_data][unit_amount]"));
  if (!Number.isSafeInteger(unit) || unit < 50) throw invalid("Invalid integer, or below the minimum charge");
  required("line_items[0][price_data][product_data][name]");
  const metadata = Object.fromEntries([...form].flatMap(([name, value]) => (name.startsWith("metadata[") ? [[name.slice(9, -1), value]] : [])));
  const session = {
    id: id("cs_test"),
    object: "checkout.session",
    adaptive_pricing: { enabled: form.get("adaptive_pricing[enabled]") === "true" },
    amount_subtotal: unit,
    amount_total: unit,
    client_reference_id: form.get("client_reference_id"),
    currency,
    livemode: false,
    metadata,
    mode: "payment",
    payment_intent: null,
    payment_status: "unpaid",
    status: "open",
    success_url: form.get("success_url"),
  };
  session.url = `https://checkout.stripe.com/c/pay/${session.id}`;
  sessions.set(session.id, session);
  return session;
}

const list = (url, data) => ({ object: "list", url, has_more: false, data });

/** A page of a list, which is newest first. */
function page(url, all, query) {
  const after = query.get("starting_after");
  const rest = after ? all.slice(all.findIndex((item) => item.id === after) + 1) : all;
  // Small pages, so that a client has to ask for the next one.
  const most = Math.min(Number(query.get("limit") ?? 10), 2);
  return { ...list(url, rest.slice(0, most)), has_more: rest.length > most };
}

function api(method, { pathname, searchParams }, headers, body) {
  if (headers.authorization !== `Bearer ${key}`) throw new Refused(401, "invalid_request_error", "Invalid API Key provided");
  if (failures.length > 0) throw new Refused(failures.shift(), "api_error", "Something went wrong");
  const payment = searchParams.get("payment_intent");
  const dispute = /^\/v1\/disputes\/(\w+)$/.exec(pathname)?.[1];
  if (method === "GET" && disputes.has(dispute)) return disputes.get(dispute);
  switch (`${method} ${pathname}`) {
    case "POST /v1/checkout/sessions": {
      if (headers["content-type"] !== "application/x-www-form-urlencoded") throw invalid("Not a form");
      const name = headers["idempotency-key"];
      const before = name && answered.get(name);
      if (before && before.body !== body) throw new Refused(400, "idempotency_error", "Keys for idempotent requests can only be used with the same parameters");
      if (before) return before.session;
      const session = createSession(new URLSearchParams(body));
      if (name) answered.set(name, { body, session });
      return session;
    }
    case "GET /v1/checkout/sessions":
      return list(pathname, [...sessions.values()].filter((session) => session.payment_intent === payment));
    case "GET /v1/refunds":
      return page(pathname, refunds.filter((refund) => refund.payment_intent === payment), searchParams);
    default:
      throw new Refused(404, "invalid_request_error", `Unrecognized request URL (${method}: ${pathname})`);
  }
}

/** What others do. Each returns the object that an event would have. */
const test = {
  /** A customer completes a session; `status` is `paid`, or `unpaid` while a bank transfer is under way. */
  pay({ session: name, status = "paid", ...changes }) {
    const session = sessions.get(name);
    session.payment_intent ??= id("pi");
    return Object.assign(session, { status: "complete", payment_status: status, url: null }, changes);
  },
  refund({ payment_intent, amount, currency = "eur", status = "succeeded", reason = "requested_by_customer", id: name }) {
    const known = refunds.find((refund) => refund.id === name);
    if (known) return Object.assign(known, { status });
    const refund = { id: id("re"), object: "refund", amount, currency, payment_intent, charge: id("ch"), reason, status };
    refunds.unshift(refund);
    return refund;
  },
  dispute(dispute) {
    disputes.set(dispute.id, dispute);
    return dispute;
  },
  /** The next requests to the API fail. */
  fail({ statuses }) {
    failures = statuses;
    return {};
  },
  sessions: () => ({ count: sessions.size }),
  /** Signs the text of an event, with several secrets if they are given, as while a secret is rolled. */
  sign({ payload, secrets, timestamp = Math.floor(Date.now() / 1000) }) {
    const headers = secrets.map((secret) => stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp }));
    const header = [headers[0], ...headers.slice(1).map((other) => other.split(",").slice(1).join(","))].join(",");
    // What the library makes, it also accepts.
    stripe.webhooks.constructEvent(payload, header, secrets.at(-1), Number.MAX_SAFE_INTEGER);
    return { header };
  },
};

const server = http.createServer(async (request, response) => {
  let body = "";
  for await (const piece of request) body += piece;
  const url = new URL(request.url, "http://localhost");
  let [status, document] = [200, {}];
  try {
    const [, first, action] = url.pathname.split("/");
    document = first === "test" ? test[action](JSON.parse(body)) : api(request.method, url, request.headers, body);
  } catch (error) {
    status = error.status ?? 500;
    document = { error: { type: error.type ?? "api_error", message: error.message } };
  }
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(document));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit());
