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
const payments = new Map();
/** Saved cards, with what happens when they are charged: a status, or the code of an error. */
const cards = new Map();
/** Disputes as they are now; their events may have an earlier state. */
const disputes = new Map();
/** The responses to requests with an idempotency key, which are the same for a day. */
const answered = new Map();
/** The requests to fail with this status, before others are answered. */
let failures = [];
/** How many responses about payments with a saved card get lost. */
let lost = 0;

class Refused extends Error {
  constructor(status, type, message, details = {}) {
    super(message);
    Object.assign(this, { status, type, details });
  }
}

const invalid = (message) => new Refused(400, "invalid_request_error", message);

/** The parameters of a session that the service may send. Stripe refuses those that it does not know. */
const KNOWN =
  /^(mode|success_url|cancel_url|client_reference_id|customer|customer_creation|payment_method_types\[0\]|adaptive_pricing\[enabled\]|metadata\[\w+\]|payment_intent_data\[(setup_future_usage|metadata\]\[\w+)\]|line_items\[0\]\[(quantity|price_data\]\[(currency|unit_amount|product_data\]\[name))\])$/;

/** The parameters of a payment with a saved card. */
const KNOWN_OF_PAYMENT =
  /^(amount|currency|customer|payment_method|payment_method_types\[0\]|off_session|confirm|description|metadata\[\w+\])$/;

/** Reads the required parameters of a form, and its metadata. */
function read(form, known) {
  for (const name of form.keys()) if (!known.test(name)) throw invalid(`Received unknown parameter: ${name}`);
  const required = (name) => form.get(name) ?? (() => { throw invalid(`Missing required param: ${name}.`); })();
  const metadata = Object.fromEntries([...form].flatMap(([name, value]) => (name.startsWith("metadata[") ? [[name.slice(9, -1), value]] : [])));
  return { required, metadata };
}

function createPayment(form) {
  const { required, metadata } = read(form, KNOWN_OF_PAYMENT);
  const card = cards.get(required("payment_method"));
  if (card?.customer !== required("customer")) throw invalid(`No such PaymentMethod: '${form.get("payment_method")}'`);
  if (required("off_session") !== "true" || required("confirm") !== "true") throw invalid("Nobody is there to confirm it");
  const payment = {
    id: id("pi"),
    object: "payment_intent",
    amount: Number(required("amount")),
    created: Math.floor(Date.now() / 1000),
    currency: required("currency"),
    customer: card.customer,
    last_payment_error: null,
    metadata,
    payment_method: card.id,
    status: "succeeded",
  };
  payments.set(payment.id, payment);
  if (card.outcome === "succeeded") return payment;
  const error = { code: card.outcome, decline_code: "generic_decline" };
  Object.assign(payment, { status: "requires_payment_method", last_payment_error: error, payment_method: null });
  throw new Refused(402, "card_error", "Your card was declined.", { ...error, payment_intent: payment });
}

/** What a request with this idempotency key does is done once. Errors are repeated, too, if something was done. */
function once(name, body, make) {
  const before = name && answered.get(name);
  if (before && before.body !== body) throw new Refused(400, "idempotency_error", "Keys for idempotent requests can only be used with the same parameters");
  if (before?.error) throw before.error;
  if (before) return before.made;
  try {
    const made = make(new URLSearchParams(body));
    if (name) answered.set(name, { body, made: structuredClone(made) });
    return made;
  } catch (error) {
    if (name && error.status === 402) answered.set(name, { body, error });
    throw error;
  }
}

function createSession(form) {
  const { required, metadata } = read(form, KNOWN);
  if (required("mode") !== "payment") throw invalid("Invalid mode");
  for (const name of ["success_url", "cancel_url"]) if (!URL.canParse(required(name))) throw invalid("Not a valid URL");
  const currency = required("line_items[0][price_data][currency]");
  if (!/^[a-z]{3}$/.test(currency)) throw invalid(`Invalid currency: ${currency}`);
  const unit = Number(required("line_items[0][price_data][unit_amount]"));
  if (!Number.isSafeInteger(unit) || unit < 50) throw invalid("Invalid integer, or below the minimum charge");
  required("line_items[0][price_data][product_data][name]");
  const saves = form.get("payment_intent_data[setup_future_usage]") === "off_session";
  if (saves && !form.has("customer") && form.get("customer_creation") !== "always") throw invalid("Nobody to save it for");
  const session = {
    id: id("cs_test"),
    object: "checkout.session",
    adaptive_pricing: { enabled: form.get("adaptive_pricing[enabled]") === "true" },
    amount_subtotal: unit,
    amount_total: unit,
    client_reference_id: form.get("client_reference_id"),
    currency,
    customer: form.get("customer") ?? (saves ? id("cus") : null),
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
  const known = payments.get(/^\/v1\/payment_intents\/(\w+)$/.exec(pathname)?.[1]);
  if (method === "GET" && known) {
    return searchParams.get("expand[]") === "payment_method" ? { ...known, payment_method: cards.get(known.payment_method) ?? null } : known;
  }
  const detached = /^\/v1\/payment_methods\/(\w+)\/detach$/.exec(pathname)?.[1];
  if (method === "POST" && detached) {
    if (!cards.get(detached)?.customer) throw invalid("The payment method you provided is not attached to a customer so detachment is impossible.");
    return Object.assign(cards.get(detached), { customer: null });
  }
  switch (`${method} ${pathname}`) {
    case "POST /v1/checkout/sessions": {
      if (headers["content-type"] !== "application/x-www-form-urlencoded") throw invalid("Not a form");
      return once(headers["idempotency-key"], body, createSession);
    }
    case "POST /v1/payment_intents": {
      const payment = once(headers["idempotency-key"], body, createPayment);
      // The payment is made, but its response is lost.
      if (lost > 0) throw new Refused(500, "api_error", `Response ${lost--} is lost`);
      return payment;
    }
    case "GET /v1/payment_intents":
      return list(pathname, [...payments.values()].filter((one) => one.customer === searchParams.get("customer") && one.created >= Number(searchParams.get("created[gte]"))));
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
    if (session.customer && !payments.has(session.payment_intent)) {
      const card = { id: id("pm"), object: "payment_method", type: "card", customer: session.customer, card: { brand: "visa", last4: "4242" }, outcome: "succeeded" };
      cards.set(card.id, card);
      payments.set(session.payment_intent, { id: session.payment_intent, object: "payment_intent", amount: session.amount_total, created: 0, currency: session.currency, customer: session.customer, metadata: {}, payment_method: card.id, status: "succeeded" });
    }
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
  /** What happens when saved cards are charged from now on. */
  cards({ outcome }) {
    for (const card of cards.values()) card.outcome = outcome;
    return {};
  },
  lose({ responses }) {
    lost = responses;
    return {};
  },
  /** The payments with saved cards, and the cards that can be charged. */
  top_ups: () => ({ payments: [...payments.values()].filter((payment) => payment.metadata.metering_top_up), cards: [...cards.values()].filter((card) => card.customer).length }),
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
    document = { error: { type: error.type ?? "api_error", message: error.message, ...error.details } };
  }
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(document));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit());
