// Steps of the scenes about webhooks, and a server that receives them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import https from "node:https";
import { choose } from "./steps.mjs";

/** A server that remembers requests. It responds with `status` and `text`, or with what the test sets them to. */
export async function receiver({ certificate, key }) {
  const got = [];
  const state = { status: 204, text: "", got };
  const server = https.createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    got.push({ headers: request.headers, text: Buffer.concat(chunks).toString() });
    response.writeHead(state.status).end(state.text);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  return Object.assign(state, { url: `https://127.0.0.1:${port}/hooks`, close: () => server.close() });
}

/** Runs a scene with a receiver, which is closed after it. */
export const withReceiver = (work) => async (visitor, settings) => {
  const hooks = await receiver(settings.identity);
  try {
    await work(visitor, settings, hooks);
  } finally {
    hooks.close();
  }
};

/** Sends a request past the page. */
export async function api(page, key, method, path, body) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(page.base + path, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(response.ok, `${method} ${path}: ${response.status}`);
  return response.json();
}

export const row = (page, url) => page.locator("#webhooks tbody tr", { has: page.getByText(url, { exact: true }) });
export const menu = (page, url) => row(page, url).locator(".menu-button");

/** The lines about how many deliveries to a webhook succeeded. */
export const rate = async (page, url) => (await row(page, url).locator("td[data-label='Delivered, 7 days']").innerText()).split(/\s*\n\s*/);

/** Chooses an entry of a webhook's menu. */
export const act = (page, url, action) => choose(row(page, url), action);

/** The deliveries, without the rows that show their payloads. */
export const sent = (page) => page.locator("#deliveries tbody tr:has([data-delivery])");
/** The rows that show payloads, and the button of a delivery that opens its own. */
export const opened = (page) => page.locator("#deliveries tr.opened");
export const opener = (delivery) => delivery.locator("[data-action=payload]");
export const firstIs = (page, state) => page.waitForSelector(`#deliveries tbody tr:first-child [data-state=${state}]`);

/** Refreshes the page until its newest delivery has this text and state. */
export async function refreshUntil(page, text, state) {
  for (let tries = 0; tries < 40; tries += 1) {
    const loaded = page.waitForResponse((response) => response.url().includes("/deliveries?"));
    await page.click("#refresh");
    await loaded;
    await page.waitForFunction(() => !document.querySelector("#refresh").hasAttribute("aria-busy"));
    await page.waitForSelector("#deliveries table");
    if ((await sent(page).first().innerText()).includes(text) && (await sent(page).first().locator(`[data-state=${state}]`).count()) === 1) return;
  }
  assert.fail(`no ${text} is ${state}`);
}

export async function openWebhooks(page) {
  await page.click("#tab-webhooks");
  await page.waitForSelector("#webhooks");
}

/** Sends the open dialog, and waits until it is closed. */
export async function submit(page) {
  await page.click("dialog [type=submit]");
  await page.waitForSelector("dialog", { state: "detached" });
}
