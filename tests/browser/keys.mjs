// Scenes in which a user replaces the key with the key itself.

import assert from "node:assert/strict";
import { checkPage, storedData } from "./browser.mjs";
import { KEY, LOOKS, call, choose, signIn, tabTo } from "./steps.mjs";

const MENU = "#keys [data-actions] .menu-button";

/** Opens the dialog that rotates the only key of the list. */
async function rotate(page) {
  await page.click("#tab-keys");
  await choose(page.locator("#keys"), "rotate");
  await page.waitForSelector("dialog [type=submit]");
}

/** The secret in the dialog, which is then closed. */
async function kept(page) {
  await page.waitForSelector("#secret-kept");
  const secret = (await page.innerText("dialog #api-key")).match(KEY)[0];
  await page.click("#secret-kept");
  await page.waitForSelector("dialog", { state: "detached" });
  return secret;
}

export const keys = {
  /** The key replaces itself, with the keyboard alone; a lost response loses no key. */
  async replace(visitor, { key }) {
    for (const options of LOOKS) {
      const look = await visitor.window(options);
      await signIn(look, key);
      await rotate(look);
      await checkPage(look, null);
    }
    const page = await visitor.window({ expected: [401, "ERR_FAILED"] });
    await signIn(page, key);
    await page.focus("#tab-usage");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector(MENU);
    await tabTo(page, MENU);
    await page.keyboard.press("Enter");
    await page.keyboard.press("r");
    assert.equal(await page.evaluate(() => document.activeElement.dataset.action), "rotate");
    await page.keyboard.press("Enter");
    await tabTo(page, "dialog [type=submit]");
    await checkPage(page, "rotate-sure");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#secret-kept");
    await checkPage(page, "rotated-with-key");
    const second = await kept(page);
    assert.equal((await call(page, "/credits/balance", key)).status, 401);
    assert.equal((await call(page, "/credits/balance", second)).status, 200);
    assert.ok(!(await storedData(page)).includes("metering.rotation"), "the idempotency key is forgotten");
    assert.ok(await page.isHidden("#rotate"), "nothing is left to finish");
    await page.click("#refresh");
    await page.waitForFunction(() => document.querySelector("#account-status").textContent === "");

    // The response is lost. The page says so, and a retry gets the same key.
    await page.reload();
    await page.waitForSelector("#tab-keys");
    const keys = [];
    const lose = async (route) => {
      keys.push((await (await route.fetch()).json()).api_key);
      await route.abort();
    };
    await page.route("**/keys/current/rotate", lose, { times: 1 });
    await rotate(page);
    await page.click("dialog [type=submit]");
    await page.waitForSelector("#dialog-error:not([hidden])");
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.waitForSelector("#unfinished-rotation");
    assert.match(await page.innerText("#rotate"), /response did not arrive.*may have been replaced/s);
    await checkPage(page, "rotate-lost");
    await page.click("#sign-out");
    assert.match(await page.innerText("dialog"), /new key has not arrived yet.*Keys tab/s);
    await checkPage(page, null);
    await page.getByRole("button", { name: "Stay" }).click();
    await page.click("#unfinished-rotation [data-action=replace-now]");
    await page.waitForSelector("#rotate #api-key");
    const third = (await page.innerText("#rotate #api-key")).match(KEY)[0];
    assert.deepEqual(keys, [third], "the key of the lost response");
    assert.equal((await call(page, "/credits/balance", third)).status, 200);

    // The tab is reloaded before the response arrives: the account page finishes the rotation.
    await page.reload();
    await page.waitForSelector("#tab-keys");
    await page.route("**/keys/current/rotate", lose, { times: 1 });
    await rotate(page);
    await page.click("dialog [type=submit]");
    await page.waitForSelector("#dialog-error:not([hidden])");
    await page.reload();
    await page.waitForSelector("#unfinished-rotation");
    await checkPage(page, "rotate-unfinished");
    await page.click("#unfinished-rotation [data-action=replace-now]");
    await page.waitForSelector("#rotate #api-key");
    const fourth = (await page.innerText("#rotate #api-key")).match(KEY)[0];
    assert.equal(keys[1], fourth);
    await page.click("#after-rotation button");
    await page.waitForSelector("#tabs:not([hidden])");
    await page.click("#tab-usage");
    await page.waitForSelector("#balance");
    assert.ok((await storedData(page)).includes(fourth));
  },
};
