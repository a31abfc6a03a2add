// A real browser, and what must hold for every page: no request leaves the origin, the content security policy is never
// violated, no error is logged, and axe finds nothing.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Runs `scene` with a browser on the pages of `base`, which may also call `api`, if the metered routes are there. */
export async function withBrowser({ base, api, chromium: executablePath, shots }, scene) {
  const browser = await chromium.launch({ executablePath, args: FLAGS });
  try {
    await scene(new Visitor(browser, { base, api, shots }));
  } finally {
    await browser.close();
  }
}

/** A user with a browser. */
class Visitor {
  constructor(browser, { base, api, shots }) {
    Object.assign(this, { browser, base, api, shots });
  }

  /** A new window with empty storage. `expected`: statuses or error texts that this visit provokes. */
  async window({ expected = [], wallet, ...options } = {}) {
    const context = await this.browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
    const page = await context.newPage();
    const faults = [];
    page.on("request", (request) => {
      const url = request.url();
      const known = [this.base, this.api].some((origin) => origin && url.startsWith(`${origin}/`));
      if (!known && !/^(blob|data):/.test(url)) faults.push(`a request left the origin: ${url}`);
      if (/sk_live_/.test(url)) faults.push(`API key in a URL: ${url}`);
    });
    page.on("pageerror", (error) => faults.push(`uncaught error: ${error.message}`));
    page.on("console", (message) => {
      const text = message.text();
      const provoked = expected.some((fault) => text.includes(typeof fault === "number" ? `status of ${fault}` : fault));
      if (/sk_live_/.test(text)) faults.push(`API key in the console: ${text}`);
      if (message.type() === "error" && !provoked) faults.push(`console error: ${text}`);
    });
    await page.addInitScript(() => {
      globalThis.__violations = [];
      addEventListener("securitypolicyviolation", (event) => globalThis.__violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    });
    if (wallet) await injectWallet(page, wallet);
    return Object.assign(page, { faults, base: this.base, shots: this.shots });
  }
}

/** A browser wallet (EIP-1193) in front of a node with unlocked accounts; the page never contacts the node itself. */
async function injectWallet(page, { node, account, refuse, hold }) {
  const calls = [];
  const sent = [];
  await page.exposeFunction("__wallet", async (method, params) => {
    calls.push(method);
    if (method === "eth_sendTransaction") sent.push(params[0]);
    await hold?.(method);
    if (refuse?.(method)) return { error: { code: 4001, message: "declined" } };
    if (method === "eth_requestAccounts" || method === "eth_accounts") return { result: [account] };
    if (method === "wallet_switchEthereumChain") return { result: null };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const response = await fetch(node, { method: "POST", headers: { "content-type": "application/json" }, body });
    return response.json();
  });
  await page.addInitScript(() => {
    globalThis.ethereum = {
      on() {},
      removeListener() {},
      async request({ method, params }) {
        const { result, error } = await globalThis.__wallet(method, params ?? []);
        if (error) throw Object.assign(new Error(error.message), { code: error.code });
        return result;
      },
    };
  });
  Object.assign(page, { walletCalls: calls, walletSent: sent });
}

/** Checks what must hold for every page, and takes a screenshot if `shots` is set: of all of it, or of what `top` begins. */
export async function checkPage(page, name, { top } = {}) {
  // The screenshot first, because axe scrolls.
  if (page.shots && name) {
    if (top) await page.locator(top).evaluate((element) => element.scrollIntoView());
    await page.screenshot({ path: `${page.shots}/${name}.png`, fullPage: !top });
  }
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const messages = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ").slice(0, 300)}`);
  assert.deepEqual(messages, [], `axe on ${name}`);
  assert.deepEqual(await page.evaluate(() => globalThis.__violations), [], `the content security policy on ${name}`);
  assert.deepEqual(page.faults, [], name);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(overflow <= 0, `${name} is ${overflow} pixels too wide`);
}

/** Everything in the page's storage. */
export const storedData = (page) => page.evaluate(() => JSON.stringify({ session: { ...sessionStorage }, local: { ...localStorage }, cookie: document.cookie }));

/** Whether the key can be seen or read anywhere on the page. */
export const shows = (page, text) =>
  page.evaluate((wanted) => document.documentElement.outerHTML.includes(wanted) || [...document.querySelectorAll("input, textarea")].some((field) => field.value.includes(wanted)), text);
