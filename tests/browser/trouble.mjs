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
};
