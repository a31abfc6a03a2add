// Users' actions on the pages, one scene each: node pages.mjs CHROMIUM. Each line is {"scene", "base", ...}, and the
// result is what the scene printed. All scenes have one browser, and each its own windows.

import assert from "node:assert/strict";
import { serve } from "../workers/lines.mjs";
import { SCREENS, Visitor, storedData, shows, checkPage, launch } from "./browser.mjs";
import { KEY, call, signIn, signUp } from "./steps.mjs";
import { account } from "./account.mjs";
import { agents } from "./agents.mjs";
import { buying } from "./buying.mjs";
import { children } from "./children.mjs";
import { consoleActions } from "./console-actions.mjs";
import { consolePayments } from "./console-payments.mjs";
import { consolePrices } from "./console-prices.mjs";
import { consoleSearch } from "./console-search.mjs";
import { consoleWebhooks } from "./console-webhooks.mjs";
import { operatorsConsole } from "./console.mjs";
import { empty } from "./empty.mjs";
import { failures } from "./failures.mjs";
import { guides } from "./guides.mjs";
import { held } from "./held.mjs";
import { keys } from "./keys.mjs";
import { keyTab } from "./keytab.mjs";
import { mail } from "./mail.mjs";
import { months } from "./months.mjs";
import { plans } from "./plans.mjs";
import { receipts } from "./receipts.mjs";
import { reference } from "./reference.mjs";
import { signin } from "./signin.mjs";
import { signing } from "./signing.mjs";
import { verifyReceipt } from "./verifyreceipt.mjs";
import { volumes } from "./volumes.mjs";
import { webhooks } from "./webhooks.mjs";
import { weights } from "./weights.mjs";

/** In the page: for each accent, the painted red, green and blue of these custom properties. */
const paintAll = ([accents, names]) => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  // Empty elements, so that a change of their colour changes no other element's.
  const probes = names.map((name) => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(--${name})`;
    return probe;
  });
  const paint = (probe) => {
    canvas.fillStyle = getComputedStyle(probe).color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const painted = accents.map((accent) => {
    document.documentElement.style.setProperty("--accent", accent);
    return probes.map(paint);
  });
  document.documentElement.style.removeProperty("--accent");
  probes.forEach((probe) => probe.remove());
  return painted;
};

const luminance = (channels) => {
  const linear = channels.map((channel) => channel / 255).map((channel) => (channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};

const contrast = (one, other) => {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
};

const scenes = {
  ...account,
  ...agents,
  ...buying,
  ...children,
  ...plans,
  ...signin,
  ...signing,
  ...consoleActions,
  ...consolePayments,
  ...consolePrices,
  ...consoleSearch,
  ...consoleWebhooks,
  ...operatorsConsole,
  ...empty,
  ...failures,
  ...guides,
  ...held,
  ...keys,
  ...keyTab,
  ...mail,
  ...months,
  ...receipts,
  ...reference,
  ...verifyReceipt,
  ...volumes,
  ...webhooks,
  ...weights,

  /** A new user goes from the front page to a key and a first call. */
  async signup(visitor) {
    const page = await visitor.window({ expected: [409] });
    const started = Date.now();
    await page.goto(`${page.base}/`);
    await page.waitForSelector("#plans .card, #plans [class]");
    await checkPage(page, "signup");
    await page.click("#signup-button");
    await page.waitForSelector("#email-error:not([hidden])");
    await checkPage(page, "signup-errors");
    await signUp(page, "name@example.com");
    await page.waitForFunction((pattern) => new RegExp(pattern).test(document.querySelector("main").innerText), KEY.source);
    const key = (await page.locator("main").innerText()).match(KEY)?.[0];
    assert.ok(key, "the key is shown");
    const called = await call(page, "/mpp/ethPrice", key);
    assert.equal(called.status, 200);
    const seconds = (Date.now() - started) / 1000;
    await checkPage(page, "signup-key");
    assert.ok(!page.url().includes(key));
    await page.reload();
    await page.waitForSelector("#signup-button");
    assert.ok(!(await shows(page, key)), "the key is gone after a reload");
    assert.ok(!(await storedData(page)).includes(key), "the key is stored nowhere");
    await signUp(page, "NAME@example.com");
    await page.waitForSelector("text=already");
    await checkPage(page, "signup-taken");
    console.log(`a key and a first call after ${seconds.toFixed(1)} s`);
  },

  /** Every accent gives readable texts: a contrast of 4.5 (WCAG 2.2, 1.4.3), measured on painted pixels. */
  async accents(visitor) {
    const levels = [0, 51, 102, 153, 204, 255];
    const grid = levels.flatMap((red) => levels.flatMap((green) => levels.map((blue) => [red, green, blue])));
    // Greys reach every luminance, and so does the point at which text on the accent turns from white to black.
    const greys = Array.from({ length: 256 }, (_, grey) => [grey, grey, grey]);
    const accents = [...grid, ...greys].map((channels) => `#${channels.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`);
    for (const colorScheme of ["light", "dark"]) {
      const page = await visitor.window({ colorScheme });
      await page.goto(`${page.base}/verify`);
      const names = ["on-accent", "accent", "accent-hover", "accent-text", "page", "card", "well", "accent-soft"];
      const painted = await page.evaluate(paintAll, [accents, names]);
      for (const [number, [onAccent, ground, hover, text, ...surfaces]] of painted.entries()) {
        const pairs = [[onAccent, ground], [onAccent, hover], ...surfaces.map((surface) => [text, surface])];
        const least = Math.min(...pairs.map(([one, other]) => contrast(one, other)));
        assert.ok(least >= 4.5, `${accents[number]} has a contrast of ${least} in the ${colorScheme} scheme`);
      }
      const [[text]] = await page.evaluate(paintAll, [["#0b6e4f"], ["accent-text"]]);
      assert.equal(text.join() === "11,110,79", colorScheme === "light", `a readable accent is unchanged: ${text}`);
      await checkPage(page);
    }
  },

  /** An upstream page, opened in a tab where a user has signed in. */
  async upstreamPage(visitor, { key, sandboxed }) {
    const page = await visitor.window();
    await page.goto(`${page.base}/metering/account`);
    await signIn(page, key);
    // A service worker from the upstream must not take over the account page, whatever headers the upstream sends.
    const taken = await page.evaluate(() => navigator.serviceWorker.register("/api/worker", { scope: "/" }).then(() => "taken", (error) => error.name));
    assert.equal(taken, "SecurityError");
    await page.goto(`${page.base}/api/page`);
    const title = await page.title();
    if (sandboxed) {
      assert.equal(title, "an upstream page", "its scripts do not run");
    } else {
      assert.ok(title.includes(key), "without the policy, the page can read the key");
    }
  },

  /** The dashboard, with usage through the gateway. */
  async dashboard(visitor, { key, empty }) {
    const page = await visitor.window({ expected: [401] });
    await page.goto(`${page.base}/metering/account`);
    await checkPage(page, "account-sign-in");
    await page.fill("#key", "sk_live_wrong");
    await page.click("#key-button");
    await page.waitForSelector("#key-error:not([hidden])");
    await checkPage(page, "account-wrong-key");
    for (const path of ["/mpp/ethPrice", "/mpp/snapshot/allTrades", "/mpp/ethPrice"]) {
      assert.equal((await call(page, path, key)).status, 200);
    }
    await signIn(page, key);
    await page.waitForSelector("#breakdown tbody tr >> nth=1");
    const text = await page.locator("#panel-usage").innerText();
    for (const part of ["/mpp/ethPrice", "/mpp/snapshot/allTrades", "0.0013888889", "0.0001388889", "240 a minute"]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    const exact = JSON.parse(await (await call(page, "/credits/balance", key)).text(), (name, value, context) => context?.source ?? value);
    assert.equal(await page.getAttribute("#balance", "data-exact"), String(exact.credit_balance), "the balance to its last digit");
    await checkPage(page, "account");
    assert.ok(await page.evaluate((wanted) => Object.values(sessionStorage).some((value) => value.includes(wanted)), key));
    assert.ok(!(await page.evaluate((wanted) => JSON.stringify({ ...localStorage }).includes(wanted), key)));
    assert.equal((await call(page, "/mpp/ethPrice", key)).status, 200);
    await page.click("#refresh");
    await page.waitForFunction(() => document.querySelector("#lifetime-used")?.textContent.includes("0.0022222222"));
    await page.click("#sign-out");
    await page.waitForSelector("#key-form");
    assert.ok(!(await storedData(page)).includes(key), "signing out forgets the key");
    assert.ok(!(await shows(page, key)));
    await page.reload();
    assert.ok(await page.isVisible("#key-form"));

    for (const [name, options] of [["account-dark", { colorScheme: "dark" }], ["account-phone", { viewport: { width: 320, height: 700 } }]]) {
      const other = await visitor.window(options);
      await signIn(other, key);
      await checkPage(other, name);
    }
    // A third of a credit on each of three days: the sum of rounded days is less than one credit.
    const month = await visitor.window();
    await month.route("**/credits/usage/daily?*", (route) => {
      const days = [...Array(3).keys()].map((back) => new Date(Date.now() - back * 86_400_000).toISOString().slice(0, 10));
      const usage = days.map((day) => ({ day, route_template: "/a", http_method: "GET", client_source: "direct", key_id: "key_1", key_name: "First key", calls: 2400, credits_used: 0.3333333333 }));
      return route.fulfill({ json: { usage, next: null } });
    });
    await signIn(month, key);
    assert.equal(await month.locator(".chart-reading").innerText(), "Last 30 days · 1 credit · 7,200 calls");
    assert.match(await month.locator("svg.chart").getAttribute("aria-label"), /in total 1 credit\./);

    const without = await visitor.window();
    await signIn(without, empty);
    await without.waitForSelector("#out-of-credits");
    await checkPage(without, "account-out-of-credits");
  },

  /** A terminal starts a signup, and a user approves it on the page. */
  async device(visitor) {
    const page = await visitor.window({ expected: [400] });
    const post = (path, body) => fetch(page.base + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    const session = await (await post("/signup/initiate", { email: "terminal@example.com", agent_name: "terminal-agent" })).json();
    const status = async () => (await fetch(`${page.base}/signup/status?session_token=${session.session_token}`)).json();
    assert.equal((await status()).status, "pending");
    await page.goto(`${page.base}/verify`);
    await page.fill("#code", "BCDF-GHJK");
    await page.click("#code-button");
    await page.waitForSelector("#code-error:not([hidden])");
    await checkPage(page, "verify-wrong-code");
    await page.goto(`${page.base}/verify?code=${session.user_code}`);
    await page.waitForFunction(() => document.querySelector("#pending-agent")?.textContent === "terminal-agent");
    assert.equal(await page.textContent("#pending-email"), "terminal@example.com");
    await checkPage(page, "verify");
    await page.check("#terms");
    await page.click("#approve-button");
    await page.waitForSelector("#approved-step:not([hidden])");
    await checkPage(page, "verify-approved");
    await new Promise((done) => setTimeout(done, 1100));
    const approved = await status();
    assert.equal(approved.status, "approved");
    assert.equal((await call(page, "/mpp/ethPrice", approved.api_key)).status, 200);
    assert.ok(!(await shows(page, approved.api_key)), "the key goes to the terminal, not to the page");
    await page.goto(`${page.base}/agents-tos/1`);
    await checkPage(page, "terms");
    await page.goto(`${page.base}/docs`);
    await page.waitForFunction(() => document.querySelector("main").textContent.includes("/credits/balance"));
    await checkPage(page, "docs");
    assert.equal((await page.goto(`${page.base}/metering/nowhere`)).status(), 404);
  },

  /** A user opens the URL that a terminal shows, sees who signs up, and approves. */
  async approve(visitor, { url, email, agent }) {
    const page = await visitor.window();
    await page.goto(url);
    await page.waitForFunction((name) => document.querySelector("#pending-agent")?.textContent === name, agent);
    assert.equal(await page.textContent("#pending-email"), email);
    await page.check("#terms");
    await page.click("#approve-button");
    await page.waitForSelector("#approved-step:not([hidden])");
    await checkPage(page);
  },

  /** Registers a payment that was made elsewhere, and rotates the key with a wallet in the browser. */
  async wallet(visitor, { key, node, account, payer, hash }) {
    const named = [{ name: "Wallet", rdns: "com.wallet.example", account: payer }];
    const page = await visitor.window({ wallet: { node, named }, expected: [403, 409] });
    await signIn(page, key);
    await page.click("#tab-top-up");
    await page.waitForSelector("#paid-hash");
    const credited = async () => (await (await call(page, "/credits/balance", key)).json()).total_credits_purchased;
    const before = await credited();
    await page.selectOption("#paid-plan", "31337/starter");
    await page.fill("#paid-hash", "0x12");
    await page.getByRole("button", { name: "Register payment" }).click();
    await page.waitForSelector("#paid-hash-error:not([hidden])");
    await page.fill("#paid-hash", hash);
    await page.getByRole("button", { name: "Register payment" }).click();
    await page.waitForSelector("#topped-up");
    assert.ok((await credited()) > before);
    assert.ok(page.walletCalls.includes("personal_sign"), "a wallet that is not known signs");
    assert.ok(!page.walletCalls.includes("eth_sendTransaction"));
    await checkPage(page, null);

    const body = JSON.stringify({ name: "crawler" });
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const { key: crawler } = await (await fetch(`${page.base}/keys`, { method: "POST", headers, body })).json();
    named[0].account = account;
    await page.click("#tab-keys");
    await page.click("#rotate summary");
    await page.click("#rotate [data-action=rotate]");
    await page.waitForFunction((pattern) => new RegExp(pattern).test(document.querySelector("#rotate").innerText), KEY.source);
    const fresh = (await page.locator("#rotate").innerText()).match(KEY)[0];
    assert.notEqual(fresh, key);
    assert.match(await page.innerText("#remaining-keys"), /One other key still works.*Delete those that you do not know.*crawler key_/s);
    assert.equal((await call(page, "/credits/balance", crawler)).status, 200);
    await checkPage(page, "rotated");
    assert.equal((await call(page, "/credits/balance", key)).status, 401);
    assert.equal((await call(page, "/credits/balance", fresh)).status, 200);
  },

  /** Pages of two other origins call the service, which allows one of them. */
  async crossOrigin(visitor, { key, page: allowed, elsewhere }) {
    const from = async (origin) => {
      const page = await visitor.window();
      await page.goto(`${origin}/health`);
      const paths = ["/mpp/ethPrice", "/mpp/nothing", "/mcp"];
      return page.evaluate(async ({ base, key, paths }) => {
        const initialize = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "page", version: "1" } };
        const responses = paths.map(async (path) => {
          const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", accept: "application/json, text/event-stream" };
          const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: initialize });
          const options = path === "/mcp" ? { method: "POST", headers: { ...headers, "mcp-protocol-version": "2025-06-18" }, body } : { headers };
          try {
            const response = await fetch(base + path, options);
            return { status: response.status, balance: response.headers.get("x-bds-credit-balance"), text: await response.text() };
          } catch (error) {
            return { refused: error.name };
          }
        });
        return Promise.all(responses);
      }, { base: visitor.base, key, paths });
    };
    const [price, nothing, tools] = await from(allowed);
    assert.equal(price.status, 200);
    assert.match(price.balance, /^0\.\d+$/, "the page can read the balance");
    assert.equal(nothing.status, 404);
    assert.match(nothing.text, /unknown_route/);
    assert.equal(tools.status, 200);
    assert.match(tools.text, /serverInfo/);
    assert.deepEqual(await from(elsewhere), Array(3).fill({ refused: "TypeError" }));
  },

  // A page of another origin reads the offers of a 402, and sends the headers of clients that pay.
  async payableFromElsewhere(visitor, { page: origin }) {
    const page = await visitor.window();
    await page.goto(`${origin}/health`);
    const call = (headers) => page.evaluate(async ({ url, headers }) => {
      const response = await fetch(url, { headers });
      return { status: response.status, offers: response.headers.get("PAYMENT-REQUIRED"), receipt: response.headers.get("PAYMENT-RESPONSE") };
    }, { url: `${visitor.base}/mpp/ethPrice`, headers });
    const offered = await call({});
    assert.equal(offered.status, 402);
    const required = JSON.parse(atob(offered.offers));
    assert.equal(required.accepts[0].amount, "50000");
    const sent = { "access-control-expose-headers": "PAYMENT-RESPONSE", "payment-retry": "1", "accept-payment": "evm/charge" };
    assert.equal((await call({ ...sent, "payment-signature": btoa("{}") })).status, 400, "the payment arrives, and cannot be read");
    assert.equal((await call({ ...sent, "x-payment": btoa("{}") })).status, 400);
  },
};

/** Errors that no scene waits for, such as those of handlers of requests. */
let strays = [];
process.on("unhandledRejection", (error) => strays.push(error));

/** Plays a scene, and returns what it printed. */
async function play(browser, { scene, ...settings }) {
  const [printed, errors] = [[], []];
  console.log = (line) => printed.push(line);
  strays = errors;
  const visitor = new Visitor(browser, settings);
  await scenes[scene](visitor, settings).finally(() => visitor.leave());
  if (errors.length > 0) throw errors[0];
  const missed = Object.keys(SCREENS).filter((screen) => SCREENS[screen] === scene && !visitor.checked.has(screen));
  assert.deepEqual(missed, [], "the documents show screens that this scene does not take any more");
  return printed.join("\n");
}

const browser = await launch(process.argv[2]);
await serve((request) => play(browser, request));
await browser.close();
