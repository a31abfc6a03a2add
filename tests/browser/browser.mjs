// A real browser, and the checks for every page: no request leaves the origin, the content security policy is never
// violated, no error is logged, and axe finds nothing where it runs (`LOOKS` in steps.mjs).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** The screens that docs/pages.md shows, and the scene that takes each. */
export const SCREENS = JSON.parse(readFileSync(new URL("screens.json", import.meta.url)));
/** The prefixes of keys and operators' tokens. */
const SECRET = /sk_live_|opr_\w{40}/;
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The longest wait for anything, in milliseconds. Far more than a busy machine needs. */
const TIMEOUT = 120_000;

export const launch = (executablePath) => chromium.launch({ executablePath, args: FLAGS, timeout: TIMEOUT });

/** A user with a browser, on the pages of `base`, which may also call `api`, if the metered routes are there. */
export class Visitor {
  /** The screens that were checked. */
  checked = new Set();
  contexts = [];

  constructor(browser, { base, api, shots, screens }) {
    Object.assign(this, { browser, base, api, shots, screens });
  }

  /** Closes all windows. */
  leave() {
    return Promise.all(this.contexts.map((context) => context.close()));
  }

  /** A new window with empty storage. `expected`: statuses or error texts that this visit provokes; `axe`: whether it runs. */
  async window({ expected = [], wallet, axe: runsAxe = true, ...options } = {}) {
    const context = await this.browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
    this.contexts.push(context);
    context.setDefaultTimeout(TIMEOUT);
    const page = await context.newPage();
    const faults = [];
    page.on("request", (request) => {
      const url = request.url();
      const known = [this.base, this.api].some((origin) => origin && url.startsWith(`${origin}/`));
      if (!known && !/^(blob|data):/.test(url)) faults.push(`a request left the origin: ${url}`);
      if (SECRET.test(url)) faults.push(`a secret in a URL: ${url}`);
    });
    page.on("pageerror", (error) => faults.push(`uncaught error: ${error.message}`));
    page.on("console", (message) => {
      const text = message.text();
      const provoked = expected.some((fault) => text.includes(typeof fault === "number" ? `status of ${fault}` : fault));
      if (SECRET.test(text)) faults.push(`a secret in the console: ${text}`);
      if (message.type() === "error" && !provoked) faults.push(`console error: ${text}`);
    });
    await page.addInitScript(() => {
      globalThis.__violations = [];
      addEventListener("securitypolicyviolation", (event) => globalThis.__violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    });
    if (wallet) await injectWallet(page, wallet);
    return Object.assign(page, { faults, runsAxe, base: this.base, shots: this.shots, screens: this.screens, checked: this.checked });
  }
}

/**
 * A browser wallet (EIP-1193) in front of a node with unlocked accounts; the page never contacts the node itself. It is
 * `window.ethereum`, or, with `named`, several wallets that announce themselves (EIP-6963), each with its own account.
 * With `chain`, it is on the chain `chain.id` until the page switches it.
 */
async function injectWallet(page, { node, account, named, refuse, hold, chain }) {
  const calls = [];
  const asked = [];
  const sent = [];
  await page.exposeFunction("__wallet", async (rdns, method, params) => {
    const mine = named?.find((wallet) => wallet.rdns === rdns)?.account ?? account;
    calls.push(method);
    asked.push(`${rdns} ${method}`);
    if (method === "eth_sendTransaction") sent.push(params[0]);
    await hold?.(method);
    if (refuse?.(method)) return { error: { code: 4001, message: "declined" } };
    if (method === "eth_requestAccounts" || method === "eth_accounts") return { result: [mine] };
    if (method === "wallet_switchEthereumChain") {
      if (chain) chain.id = params[0].chainId;
      return { result: null };
    }
    if (method === "eth_chainId" && chain) return { result: chain.id };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const response = await fetch(node, { method: "POST", headers: { "content-type": "application/json" }, body });
    return response.json();
  });
  const infos = named?.map(({ name, rdns, icon }, number) => ({ name, rdns, icon, uuid: `00000000-0000-4000-8000-00000000000${number}` }));
  await page.addInitScript((announced) => {
    const provider = (rdns) => ({
      on() {},
      removeListener() {},
      async request({ method, params }) {
        const { result, error } = await globalThis.__wallet(rdns, method, params ?? []);
        if (error) throw Object.assign(new Error(error.message), { code: error.code });
        return result;
      },
    });
    if (!announced) {
      globalThis.ethereum = provider("");
      return;
    }
    const details = announced.map((info) => Object.freeze({ info: Object.freeze(info), provider: provider(info.rdns) }));
    const announce = () => details.forEach((detail) => dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail })));
    addEventListener("eip6963:requestProvider", announce);
    announce();
  }, infos);
  Object.assign(page, { walletCalls: calls, walletAsked: asked, walletSent: sent });
}

/**
 * Makes the checks for every page. Takes a screenshot, of all of it or of what `top` begins: into the folder `shots`
 * if it is set, and into the folder `screens` if it is set and the documents show it.
 */
export async function checkPage(page, name, { top } = {}) {
  // The screenshot first, because axe scrolls.
  page.checked.add(name);
  for (const folder of name ? [page.shots, name in SCREENS && page.screens].filter(Boolean) : []) {
    if (top) await page.locator(top).evaluate((element) => element.scrollIntoView());
    await page.screenshot({ path: `${folder}/${name}.png`, fullPage: !top });
  }
  if (page.runsAxe !== false) {
    if (!(await page.evaluate(() => Boolean(globalThis.axe)))) await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"], selectors: false }));
    const messages = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ").slice(0, 300)}`);
    assert.deepEqual(messages, [], `axe on ${name}`);
  }
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
