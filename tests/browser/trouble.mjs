// Scenes in which something comes late, is lost, or never comes.

import assert from "node:assert/strict";
import { kept, wellBehaved } from "./browser.mjs";
import { KEY, call, signIn, signUp } from "./steps.mjs";

/** A wait that the scene ends: `route` holds the requests that it is given to. */
function gate() {
  let open;
  const opened = new Promise((resolve) => {
    open = resolve;
  });
  return { open, opened, route: async (route) => opened.then(() => route.continue()) };
}

/** Sends the request, and loses the answer. */
async function lose(route) {
  await route.fetch();
  await route.abort();
}

const settle = (page) => page.waitForTimeout(400);
const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.tagName);
const SUMMARY = "**/credits/usage/summary*";

export const trouble = {
  /** Answers that come after signing out, and what the dashboard does while there are none. */
  async late(visitor, { key, other }) {
    const page = await visitor.window();
    await signIn(page, key);
    await page.focus("#refresh");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => !document.querySelector("#refresh").hasAttribute("aria-busy"));
    assert.equal(await focused(page), "refresh", "a button that worked keeps the focus");

    let held = gate();
    await page.route(SUMMARY, held.route, { times: 1 });
    await page.click("#refresh");
    await page.click("#sign-out");
    held.open();
    await settle(page);
    assert.ok(await page.isHidden("#dashboard"), "what comes after signing out is not shown");
    assert.ok(await page.isVisible("#key-form"));

    await signIn(page, key);
    held = gate();
    await page.route(SUMMARY, held.route, { times: 1 });
    await page.click("#refresh");
    await page.click("#sign-out");
    // As it is copied from a narrow terminal.
    await page.fill("#key", ` ${other.slice(0, 20)} \u200b${other.slice(20)}\u00a0`);
    await page.click("#key-button");
    await page.waitForFunction(() => document.querySelector("#account-name").textContent === "other");
    held.open();
    await settle(page);
    assert.equal(await page.textContent("#account-name"), "other", "nor is it mixed with another account");
    assert.ok((await kept(page)).includes(other));

    held = gate();
    await page.route(SUMMARY, (route) => held.opened.then(() => route.fulfill({ status: 401, json: { error: "unauthorized", message: "No." } })), { times: 1 });
    await page.click("#refresh");
    await page.click("#sign-out");
    await signIn(page, key);
    held.open();
    await settle(page);
    assert.ok(await page.isVisible("#balance"), "nor does a late refusal close another account");

    held = gate();
    await page.route(SUMMARY, held.route, { times: 1 });
    await page.reload();
    assert.match(await page.innerText("main"), /^Account\s+Loading …\s*$/);
    await wellBehaved(page, "account-loading");
    held.open();
    await page.waitForSelector("#balance");
    assert.equal(await page.textContent("#account-status"), "");
  },

  /** Signing up where answers are lost on the way. */
  async lostAnswers(visitor) {
    const page = await visitor.window({ expected: ["ERR_FAILED", 400, 404] });
    await page.route("**/signup/challenge", (route) => route.abort());
    await page.goto(`${page.base}/metering`);
    await signUp(page, "challenge@example.com");
    await page.waitForSelector("#signup-error:not([hidden])");
    await wellBehaved(page, "signup-challenge-failed");
    await page.unroute("**/signup/challenge");
    await page.click("#signup-button");
    await page.waitForSelector("#api-key");

    await page.reload();
    await page.route("**/verify", lose, { times: 1 });
    await signUp(page, "approved@example.com");
    await page.waitForSelector("#signup-error:not([hidden])");
    await page.click("#signup-button");
    await page.waitForSelector("#api-key");

    await page.reload();
    await page.route("**/signup/status*", lose, { times: 1 });
    await signUp(page, "lost@example.com");
    await page.waitForSelector("#signup-error:not([hidden])");
    assert.match(await page.innerText("#signup-error"), /account was opened, but its key was lost.*operator/);
    await wellBehaved(page, "signup-key-lost");

    await page.route("**/assets/altcha.min*", (route) => route.abort(), { times: 1 });
    await page.reload();
    const again = page.locator("#challenge").getByRole("button", { name: "Try again" });
    await again.waitFor();
    await signUp(page, "script@example.com");
    await page.waitForSelector("#signup-error:not([hidden])");
    assert.notEqual(await page.innerText("#signup-error"), await page.innerText("#challenge p"), "it is not said twice");
    await wellBehaved(page, "signup-challenge-missing");
    await again.click();
    await page.waitForSelector("altcha-widget");
    await page.click("#signup-button");
    await page.waitForSelector("#api-key");
  },

  /** Pages whose scripts are not there yet, or never are. */
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

  /** A wallet that declines, that never answers, and that answers late. */
  async walletTrouble(visitor, { key, node, account }) {
    let hold = () => undefined;
    let declines = true;
    const wallet = { node, account, refuse: (method) => declines && method === "eth_sendTransaction", hold: (method) => hold(method) };
    const page = await visitor.window({ wallet });
    await signIn(page, key);
    await page.click("#tab-top-up");
    const last = page.locator('input[name="plan"]').last();
    await last.check();
    await page.click("[data-action=pay]");
    await page.waitForSelector("#panel-top-up [role=alert]");
    assert.ok(await last.isChecked(), "declining keeps the choice");
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "alert");
    assert.match(page.walletSent.at(-1).chainId, /^0x[1-9a-f]/, "the payment names its chain");
    await wellBehaved(page, "top-up-declined");

    const stop = page.getByRole("button", { name: "Stop waiting for the wallet" });
    const never = gate();
    hold = (method) => method === "eth_requestAccounts" && never.opened;
    await page.click("[data-action=pay]");
    await stop.click();
    await page.waitForSelector("[data-action=pay]");
    assert.match(await page.innerText("#panel-top-up [role=alert]"), /stopped waiting/);
    hold = (method) => method === "eth_sendTransaction" && never.opened;
    await page.click("[data-action=pay]");
    await page.waitForSelector('[data-step="send"][data-state="now"]');
    await wellBehaved(page, "top-up-waiting");
    await stop.click();
    await page.waitForSelector("#uncertain-payment");
    await page.getByRole("button", { name: "Nothing was sent" }).click();

    await page.click("#tab-rotate");
    hold = (method) => method === "personal_sign" && never.opened;
    await page.click("#rotate [data-action=rotate]");
    await page.waitForFunction(() => document.querySelector("#rotate .status").textContent.includes("Sign the message"));
    await wellBehaved(page, "rotate-waiting");
    await stop.click();
    await page.waitForSelector("#rotate [role=alert]:not([hidden])");

    // It signs after its person has signed out: nothing is replaced.
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

    // The key is on its way already: it is shown, since nobody can show it again, and not kept.
    hold = () => undefined;
    await signIn(page, key);
    const answer = gate();
    await page.route("**/api-key/recover/verify", answer.route, { times: 1 });
    await page.click("#tab-rotate");
    await page.click("#rotate [data-action=rotate]");
    await page.waitForFunction(() => document.querySelector("#rotate .status").textContent.includes("Replacing"));
    await page.click("#sign-out");
    answer.open();
    await page.waitForSelector("#late-key");
    const fresh = (await page.innerText("#late-key")).match(KEY)[0];
    assert.ok(!(await kept(page)).includes(fresh));
    assert.equal((await call(page, "/credits/balance", fresh)).status, 200);
    await wellBehaved(page, "rotated-late");
    await page.getByRole("button", { name: "I have kept it" }).click();
    assert.ok(!(await page.content()).includes(fresh));
    assert.ok(await page.isVisible("#key-form"));
  },
};
