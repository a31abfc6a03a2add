// Sends an operation's request with the key of this tab, or with the session of this browser where that is enough, and shows the response, what it cost and the balance after it.

import { noteBalance } from "/assets/balance.js";
import { amount } from "/assets/decimal.js";
import { busy, h } from "/assets/dom.js";
import { readEvents, readText } from "/assets/events.js";
import { guideLink } from "/assets/guidelink.js";
import { pretty } from "/assets/pretty.js";
import { askForKey } from "/assets/keyask.js";
import { isFree, priceFor, priceTag } from "/assets/price.js";
import { apiOrigin, targetOf } from "/assets/samples.js";
import { SESSION, ownKey, rememberedKey } from "/assets/session.js";

/** The maximum characters of a response, and events of a stream, to show. */
const SHOWN_MOST = 200_000;
const EVENTS_MOST = 50;
const REDIRECTED = "The API responded with a redirect, which this page does not follow. It may have been charged; see your account.";
const CHARGED = "x-bds-credit-charged";
const BALANCE = "x-bds-credit-balance";

/** Tags of the service's own endpoints that can be tried: they only read. */
const READ_ONLY = ["account", "plans", "descriptions"];

/** Whether an operation can be sent from the page. */
export function isTriable(operation) {
  const tag = operation.tags?.[0];
  // A panel that shows one response is no use for a WebSocket connection.
  if (tag === "metered") return !operation["x-websocket"] && !["options", "trace"].includes(operation.method);
  return operation.method === "get" && READ_ONLY.includes(tag);
}

/** The panel that tries an operation: parameters, body, a button that shows the cost, and the response. Call `update` when a value changes, to show the new cost. */
export function tryIt(operation, parameters, body) {
  const needsKey = (operation.security ?? []).length > 0;
  // Only the key itself pays.
  const keyOf = () => (operation.tags?.[0] === "metered" ? ownKey() : rememberedKey());
  if (needsKey && !keyOf()) return withoutKey(() => tryIt(operation, parameters, body));
  const cost = h("p", { class: "hint", "data-cost": "" });
  const update = () => cost.replaceChildren(...costOf(operation, parameters.values()));
  update();
  const send = h("button", { class: "button button-small", type: "button", "data-action": "send" }, "Send request");
  const stop = h("button", { class: "button button-quiet button-small", type: "button", "data-action": "stop", hidden: true }, "Stop");
  const status = h("p", { class: "quietly-there", role: "status" });
  const result = h("div", { class: "try-result" });
  send.addEventListener("click", () => {
    const key = keyOf();
    if (needsKey && !key) result.replaceChildren(rememberedKey() ? askForKey(() => result.replaceChildren()) : signInFirst());
    else if (parameters.check() && (body?.check() ?? true)) busy(send, () => run({ operation, target: targetOf(operation, parameters.values()), key: needsKey && key, body: body?.text() ?? "", stop, status, result }));
  });
  return { element: h("div", { class: "try" }, h("div", { class: "actions" }, send, stop, cost), status, result), update };
}

/** The panel for a user without a key. `again` rebuilds the panel with one. */
function withoutKey(again) {
  const element = h("div", { class: "try" });
  const shown = { element, update() {} };
  const use = () => {
    const { element: panel, update } = again();
    shown.update = update;
    element.replaceWith(panel);
    panel.querySelector("button").focus();
  };
  element.append(rememberedKey() === SESSION ? askForKey(use) : signInFirst());
  return { element, update: () => shown.update() };
}

/** What sending will cost. */
function costOf(operation, values) {
  const price = operation["x-price"];
  const credits = price ? priceFor(price, values) : null;
  const known = credits === null ? price : { ...price, credits, tiers: undefined, beyond: undefined };
  if (isFree(known)) return ["Sends a real request. It is free."];
  return [price.per === "connection" ? "Opens a real stream: " : "Sends a real request: ", priceTag({ "x-price": known })];
}

function signInFirst() {
  return h("p", { class: "notice", "data-needs": "key" }, h("a", { href: "/metering/account" }, "Open your account"), " to try this with your key, or ", h("a", { href: "/metering" }, "sign up"), " for one.");
}

async function run({ operation, target, key, body, stop, status, result }) {
  const controller = new AbortController();
  const started = performance.now();
  stop.onclick = () => controller.abort();
  stop.hidden = false;
  status.textContent = "Sending …";
  result.replaceChildren();
  // A service's own endpoints are also on the pages' origin.
  const inSession = key === SESSION;
  const origin = operation.tags?.[0] === "metered" ? apiOrigin() : inSession ? "/metering/session" : "";
  const headers = { ...(key && !inSession ? { Authorization: `Bearer ${key}` } : {}), ...(body ? { "Content-Type": "application/json" } : {}) };
  try {
    const response = await fetch(origin + target, {
      method: operation.method.toUpperCase(),
      headers,
      body: body || undefined,
      cache: "no-store",
      credentials: inSession ? "same-origin" : "omit",
      redirect: "manual",
      referrerPolicy: "no-referrer",
      signal: controller.signal,
    });
    noteBalance(key, response.headers.get(BALANCE));
    const { element, summary } = factsOf(response, performance.now() - started);
    status.textContent = summary;
    result.replaceChildren(element, ...notices(response));
    await showBody(response, result, status);
  } catch (error) {
    if (controller.signal.aborted) {
      result.append(h("p", { class: "hint", "data-ended": "stopped" }, "Stopped."));
      status.textContent = "Stopped.";
    } else {
      result.append(h("p", { class: "notice notice-bad", role: "alert" }, result.childElementCount > 0 ? "The connection was lost. " : "Could not reach the service. Your account page shows whether the request was charged. ", guideLink("idempotency", "How programs retry without paying twice"), "."));
      status.textContent = "";
    }
  } finally {
    // Otherwise a stream that this page no longer reads would stay open.
    controller.abort();
    if (document.activeElement === stop) stop.previousElementSibling.focus();
    stop.hidden = true;
  }
}

/** Status, time, charge and balance, as elements and as a sentence. */
function factsOf(response, milliseconds) {
  const redirected = response.type === "opaqueredirect";
  const [charged, balance] = [CHARGED, BALANCE].map((name) => response.headers.get(name));
  const code = redirected ? "Redirect" : `${response.status} ${response.statusText}`.trim();
  const fact = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", { "data-fact": name.split(" ")[0].toLowerCase() }, ...value));
  const element = h(
    "dl",
    { class: "try-facts" },
    fact("Status", h("span", { class: response.ok ? "good" : "bad" }, code)),
    fact("Time", `${Math.round(milliseconds)} ms`),
    charged !== null && fact("Cost in credits", amount(charged)),
    balance !== null && fact("Balance", amount(balance)),
  );
  const costs = charged === null ? "" : ` Charged ${charged} credits. Balance: ${balance}.`;
  return { element, summary: `${redirected ? REDIRECTED : `Response ${code}.`}${costs}` };
}

/** Notes about a redirect, an empty account, or a rate limit. */
function notices(response) {
  if (response.type === "opaqueredirect") return [h("p", { class: "hint" }, REDIRECTED)];
  if (response.status === 402) return [h("p", { class: "notice notice-warn" }, "This account is out of credits. ", h("a", { href: "/metering/account#top-up" }, "Top up"), ", or read ", guideLink("errors#402-credits", "what a 402 means"), ".")];
  if (response.status === 429) return [h("p", { class: "notice notice-warn" }, "Too many requests. ", guideLink("rate-limits", "How limits work, and how to retry"), ".")];
  return [];
}

async function showBody(response, result, status) {
  if (!response.body) return;
  if ((response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    await showEvents(response, result, status);
    return;
  }
  let text = "";
  const pre = h("pre", { class: "response-body", tabindex: "0", role: "group", "aria-label": "Response body" });
  const draw = (isCut) => {
    if (text === "") return;
    pre.replaceChildren(...(isCut ? [text.slice(0, SHOWN_MOST)] : pretty(text)));
    result.append(pre);
    if (isCut) result.append(h("p", { class: "hint" }, `Only the first ${SHOWN_MOST.toLocaleString("en")} characters are shown.`));
  };
  try {
    await readText(response, (part) => {
      text += part;
      return text.length <= SHOWN_MOST;
    });
  } catch (error) {
    draw(text.length > SHOWN_MOST);
    throw error;
  }
  draw(text.length > SHOWN_MOST);
}

/** Shows events as they arrive, the newest first. Screen readers announce only the response and the end. */
async function showEvents(response, result, status) {
  const count = h("p", { class: "hint", "data-count": "0" }, "Waiting for events …");
  const list = h("ol", { class: "events", reversed: true, tabindex: "0", "aria-label": "Events" });
  result.append(count, list);
  let total = 0;
  await readEvents(response, ({ type, data }) => {
    total += 1;
    const cut = data.length > SHOWN_MOST / EVENTS_MOST;
    const body = h("pre", {}, ...(cut ? [`${data.slice(0, SHOWN_MOST / EVENTS_MOST)} …`] : pretty(data)));
    list.prepend(h("li", { value: total }, h("p", { class: "event-type" }, `${total} · ${type}`), body));
    if (list.childElementCount > EVENTS_MOST) list.lastElementChild.remove();
    count.textContent = `${total} event${total === 1 ? "" : "s"}, newest first`;
    count.dataset.count = String(total);
  });
  result.append(h("p", { class: "hint", "data-ended": "end" }, "The stream ended."));
  status.textContent = "The stream ended.";
}
