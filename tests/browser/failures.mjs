// Scenes in which a response is late, lost, or never comes.

import assert from "node:assert/strict";
import { storedData, checkPage } from "./browser.mjs";
import { KEY, call, signIn, signUp } from "./steps.mjs";

/** A gate that the scene opens: `route` holds its requests until then. */
function gate() {
  let open;
  const opened = new Promise((resolve) => {
    open = resolve;
  });
  return { open, opened, route: async (route) => opened.then(() => route.continue()) };
}

/** Sends the request, and loses the response. */
async function loseResponse(route) {
  await route.fetch();
  await route.abort();
}

const settle = (page) => page.waitForTimeout(400);
const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.tagName);
const SUMMARY = "**/credits/usage/summary*";

export const failures = {
  /** Responses that arrive after signing out, and the dashboard while it waits for one. */
  async late(visitor, { key, other }) {
    const page = await visitor.window();
    await signIn(page, key);
    await page.focus("#refresh");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => !document.querySelector("#refresh").hasAttribute("aria-busy"));
    assert.equal(await focused(page), "refresh", "a button keeps the focus after its work is done");

    let held = gate();
    await page.route(SUMMARY, held.route, { times: 1 });
    await page.click("#refresh");
    await page.click("#sign-out");
    held.open();
    await settle(page);
    assert.ok(await page.isHidden("#dashboard"), "a response that arrives after signing out is not shown");
    assert.ok(await page.isVisible("#key-form"));

    await signIn(page, key);
    held = gate();
    await page.route(SUMMARY, held.route, { times: 1 });
    await page.click("#refresh");
    await page.click("#sign-out");
    // Copied from a narrow terminal.
    await page.fill("#key", ` ${other.slice(0, 20)} \u200b${other.slice(20)}\u00a0`);
    await page.click("#key-button");
    await page.waitForFunction(() => document.querySelector("#account-name").textContent === "other");
    held.open();
    await settle(page);
    assert.equal(await page.textContent("#account-name"), "other", "a late response is not mixed with another account");
    assert.ok((await storedData(page)).includes(other));

    held = gate();
    await page.route(SUMMARY, (route) => held.opened.then(() => route.fulfill({ status: 401, json: { error: "unauthorized", message: "No." } })), { times: 1 });
    await page.click("#refresh");
    await page.click("#sign-out");
    await signIn(page, key);
    held.open();
    await settle(page);
    assert.ok(await page.isVisible("#balance"), "a late refusal does not close another account");

    held = gate();
    await page.route(SUMMARY, held.route, { times: 1 });
    await page.reload();
    assert.match(await page.innerText("main"), /^Account\s+Loading …\s*$/);
    await checkPage(page, "account-loading");
    held.open();
    await page.waitForSelector("#balance");
    assert.equal(await page.textContent("#account-status"), "");
  },

  /** An account with many routes and a single call; and many plans with long prices. */
  async longLists(visitor, { key }) {
    const page = await visitor.window({ viewport: { width: 700, height: 900 } });
    const routes = Array.from({ length: 40 }, (_, number) => ({ route_template: `/mpp/${"long-".repeat(12)}${number}`, http_method: "GET", call_count: 1, credits_used: 0.5 }));
    await page.route(SUMMARY, async (route) => {
      const response = await (await route.fetch()).json();
      const by_day = [{ day: new Date().toISOString().slice(0, 10), usage_events: 1, credits_used: 1 }];
      const totals = { ...response.totals, usage_events: 1, credits_used: 1 };
      await route.fulfill({ json: { ...response, totals, by_day, by_endpoint: routes } });
    });
    await signIn(page, key);
    const endpoints = page.locator('section[aria-labelledby="endpoints-title"]');
    assert.equal(await endpoints.locator("tbody tr").count(), 5);
    const words = await page.innerText(".chart-reading");
    assert.match(words, /1 credit · 1 call$/);
    await checkPage(page, "account-many-routes");
    await endpoints.getByRole("button", { name: "Show all 40" }).click();
    assert.equal(await endpoints.locator("tbody tr").count(), 40);

    const plans = await visitor.window({ viewport: { width: 700, height: 900 } });
    await plans.route("**/credits/plans", async (route) => route.fulfill({ json: dear(await (await route.fetch()).json()) }));
    await plans.goto(`${plans.base}/metering`);
    await plans.waitForSelector("#plans .offer >> nth=7");
    await checkPage(plans, "plans-many");
  },

  /** A signup whose responses are lost on the way. */
  async lostResponses(visitor) {
    const page = await visitor.window({ expected: ["ERR_FAILED", 400, 404] });
    await page.route("**/signup/challenge", (route) => route.abort());
    await page.goto(`${page.base}/metering`);
    await signUp(page, "challenge@example.com");
    await page.waitForSelector("#signup-error:not([hidden])");
    await checkPage(page, "signup-challenge-failed");
    await page.unroute("**/signup/challenge");
    await page.click("#signup-button");
    await page.waitForSelector("#api-key");

    await page.reload();
    await page.route("**/verify", loseResponse, { times: 1 });
    await signUp(page, "approved@example.com");
    await page.waitForSelector("#signup-error:not([hidden])");
    await page.click("#signup-button");
    await page.waitForSelector("#api-key");

    await page.reload();
    await page.route("**/signup/status*", loseResponse, { times: 1 });
    await signUp(page, "lost@example.com");
    await page.waitForSelector("#signup-error:not([hidden])");
    assert.match(await page.innerText("#signup-error"), /account was opened, but its key was lost.*operator/);
    await checkPage(page, "signup-key-lost");

    await page.route("**/assets/altcha.min*", (route) => route.abort(), { times: 1 });
    await page.reload();
    const again = page.locator("#challenge").getByRole("button", { name: "Try again" });
    await again.waitFor();
    await signUp(page, "script@example.com");
    await page.waitForSelector("#signup-error:not([hidden])");
    assert.notEqual(await page.innerText("#signup-error"), await page.innerText("#challenge p"), "the two messages differ");
    await checkPage(page, "signup-challenge-missing");
    await again.click();
    await page.waitForSelector("altcha-widget");
    await page.click("#signup-button");
    await page.waitForSelector("#api-key");
  },

  /** Pages whose scripts load late or never. */
  async withoutScripts(visitor) {
    for (const [path, field, text] of [["/metering", "#email", "a@example.com"], ["/verify", "#code", "BCDF-GHJK"]]) {
      const never = await visitor.window({ javaScriptEnabled: false });
      await never.goto(never.base + path);
      assert.match(await never.innerText("main"), /JavaScript/);
      assert.ok(await never.isDisabled('main [type="submit"]'), path);

      const page = await visitor.window();
      const held = gate();
      await page.route("**/assets/*.js", held.route);
      await page.goto(page.base + path, { waitUntil: "commit" });
      await page.fill(field, text);
      await page.press(field, "Enter");
      await settle(page);
      assert.equal(new URL(page.url()).pathname, path, "nothing is sent yet");
      assert.equal(await page.inputValue(field), text);
      held.open();
      await page.waitForSelector('main [type="submit"]:enabled');
    }
    const never = await visitor.window({ javaScriptEnabled: false });
    await never.goto(`${never.base}/metering/account`);
    assert.ok(!(await never.innerText("main")).includes("Loading"));
  },

  /** The script of the account's other tabs does not arrive at first. */
  async missingTabs(visitor, { key }) {
    const page = await visitor.window({ expected: ["ERR_FAILED"] });
    const script = "**/assets/accounttabs.*";
    await page.route(script, (route) => route.abort());
    await signIn(page, key);
    await page.click("#tab-keys");
    await page.waitForSelector("#panel-keys [role=alert]");
    await checkPage(page, null);
    await page.unroute(script);
    await page.click("#panel-keys button");
    await page.waitForSelector("#panel-keys table");
    await page.click("#tab-rotate");
    await page.waitForSelector("#rotate [data-action=replace]");
    await checkPage(page, null);
  },

  /** A wallet that declines, never responds, or responds late. */
  async walletFailures(visitor, { key, node, account }) {
    let hold = () => undefined;
    let declines = true;
    const wallet = { node, account, refuse: (method) => declines && method === "eth_sendTransaction", hold: (method) => hold(method) };
    const page = await visitor.window({ wallet });
    await signIn(page, key);
    await page.click("#tab-top-up");
    const last = page.locator('input[name="plan"]').last();
    await last.check();
    await page.click("[data-action=continue]");
    await page.waitForSelector("#purchase");
    await page.click("[data-action=pay]");
    await page.waitForSelector("#panel-top-up [role=alert]:not([hidden])");
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "alert");
    assert.match(page.walletSent.at(-1).chainId, /^0x[1-9a-f]/, "the payment has its chain id");
    await checkPage(page, "top-up-declined");

    const stop = page.getByRole("button", { name: "Stop waiting for the wallet" });
    const never = gate();
    hold = (method) => method === "eth_requestAccounts" && never.opened;
    await page.click("[data-action=pay]");
    await stop.click();
    await page.waitForSelector("#panel-top-up [role=alert]:not([hidden])");
    assert.match(await page.innerText("#panel-top-up [role=alert]"), /stopped waiting/);
    hold = (method) => method === "eth_sendTransaction" && never.opened;
    await page.click("[data-action=pay]");
    await page.waitForSelector('[data-step="send"][data-state="now"]');
    await checkPage(page, "top-up-waiting");
    await stop.click();
    await page.waitForSelector("#uncertain-payment");
    await page.getByRole("button", { name: "Nothing was sent" }).click();

    await page.click("#tab-rotate");
    await page.click("#rotate summary");
    hold = (method) => method === "personal_sign" && never.opened;
    await page.click("#rotate [data-action=rotate]");
    await page.waitForFunction(() => document.querySelector("#rotate .status").textContent.includes("Sign the message"));
    await checkPage(page, "rotate-waiting");
    await stop.click();
    await page.waitForSelector("#rotate [role=alert]:not([hidden])");

    // The wallet signs after the user has signed out: no key is replaced.
    const posts = [];
    page.on("request", (request) => request.url().endsWith("/recover/verify") && posts.push(request));
    const late = gate();
    hold = (method) => method === "personal_sign" && late.opened;
    await page.click("#rotate [data-action=rotate]");
    await page.waitForFunction(() => document.querySelector("#rotate .status").textContent.includes("Sign the message"));
    await page.click("#sign-out");
    late.open();
    await settle(page);
    assert.deepEqual(posts, []);
    assert.equal((await call(page, "/credits/balance", key)).status, 200);

    // The key is already on its way. It is shown, because no one can show it again, but not stored.
    hold = () => undefined;
    await signIn(page, key);
    const heldResponse = gate();
    await page.route("**/api-key/recover/verify", heldResponse.route, { times: 1 });
    await page.click("#tab-rotate");
    await page.click("#rotate summary");
    await page.click("#rotate [data-action=rotate]");
    await page.waitForFunction(() => document.querySelector("#rotate .status").textContent.includes("Replacing"));
    await page.click("#sign-out");
    heldResponse.open();
    await page.waitForSelector("#late-key");
    const fresh = (await page.innerText("#late-key")).match(KEY)[0];
    assert.ok(!(await storedData(page)).includes(fresh));
    assert.equal((await call(page, "/credits/balance", fresh)).status, 200);
    await checkPage(page, "rotated-late");
    await page.getByRole("button", { name: "I have saved it" }).click();
    await page.waitForSelector("#late-key", { state: "detached" });
    assert.ok(!(await page.content()).includes(fresh));
    assert.ok(await page.isVisible("#key-form"));
  },

  /** Pages 320 pixels wide with the longest texts; and forced system colours. */
  async narrow(visitor, { key, account, terms }) {
    const narrow = { viewport: { width: 320, height: 700 }, wallet: { node: visitor.base, account } };
    for (const options of [narrow, { ...narrow, colorScheme: "dark" }, { ...narrow, viewport: { width: 1200, height: 900 } }]) {
      const page = await visitor.window(options);
      const name = (path) => `${path}-${options.viewport.width}${options.colorScheme ?? ""}`;
      for (const path of ["/metering", "/verify", terms]) {
        await page.goto(page.base + path);
        await page.waitForLoadState("networkidle");
        await checkPage(page, name(`brand${path.replaceAll("/", "-")}`));
      }
      await page.route("**/credits/plans", async (route) => route.fulfill({ json: dear(await (await route.fetch()).json()) }));
      await signIn(page, key);
      await page.click("#tab-top-up");
      await page.waitForSelector("[data-action=continue]");
      await checkPage(page, name("top-up-dear"));
      const [price, words, next, option] = await Promise.all([".offer .price", ".offer strong", "[data-action=continue]", ".offers .offer >> nth=-1"].map((part) => page.locator(part).first().boundingBox()));
      assert.ok(price.y > words.y && price.width > 100, "the price is on its own line");
      assert.ok(next.y > option.y + option.height, "the button does not cover a plan");
    }
    const page = await visitor.window({ forcedColors: "active" });
    await signIn(page, key);
    const colour = (tab) => page.evaluate((id) => getComputedStyle(document.getElementById(id)).borderBottomColor, tab);
    assert.notEqual(await colour("tab-usage"), await colour("tab-top-up"), "the open tab is recognisable");
  },
};

/** The same plans with the longest possible prices. */
function dear({ chains, plans, ...rest }) {
  const chain = chains[0] ?? { chain_id: 1, name: "devnet", confirmations: "1" };
  const plan = plans[0] ?? { id: "p", credits: 1, bonus_credits: 0, payment_kind: "erc20", token_decimals: 18, token_symbol: "T", label: "Plan", active: true };
  const long = (number) => ({ ...plan, id: `dear-${number}`, chain_id: chain.chain_id, label: "A plan for those who need a lot", token_amount: "1234567890.123456789012345678", token_symbol: "LONGESTTOKEN", discount_percent: 15 });
  return { ...rest, chains: [chain], plans: [1, 2, 3, 4, 5, 6, 7, 8].map(long) };
}
