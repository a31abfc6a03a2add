// Scenes in which a user replaces the key with the key itself.

import assert from "node:assert/strict";
import { checkPage, storedData } from "./browser.mjs";
import { KEY, LOOKS, call, signIn, tabTo } from "./steps.mjs";

export const keys = {
  /** The key replaces itself, with the keyboard alone; a lost response loses no key. */
  async replace(visitor, { key }) {
    for (const options of LOOKS) {
      const look = await visitor.window(options);
      await signIn(look, key);
      await look.click("#tab-rotate");
      await look.click("[data-action=replace]");
      await checkPage(look, null);
    }
    const page = await visitor.window({ expected: [401, "ERR_FAILED"] });
    await signIn(page, key);
    await page.focus("#tab-usage");
    for (let moves = 0; moves < 5; moves += 1) await page.keyboard.press("ArrowRight");
    await tabTo(page, "[data-action=replace]");
    await page.keyboard.press("Enter");
    assert.match(await page.innerText("#replace-sure"), /refused until they have the new one/);
    await checkPage(page, "rotate-sure");
    await tabTo(page, "[data-action=keep]");
    await page.keyboard.press("Enter");
    assert.ok(await page.isHidden("#replace-sure"));
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#rotate #api-key");
    const second = (await page.innerText("#rotate #api-key")).match(KEY)[0];
    await checkPage(page, "rotated-with-key");
    assert.equal((await call(page, "/credits/balance", key)).status, 401);
    assert.equal((await call(page, "/credits/balance", second)).status, 200);
    assert.ok(!(await storedData(page)).includes("metering.rotation"), "the idempotency key is forgotten");
    await page.click("#refresh");
    await page.waitForFunction(() => document.querySelector("#account-status").textContent === "");

    // The response is lost. The page says so, and the next try gets the same key.
    await page.reload();
    await page.waitForSelector("#tab-rotate");
    await page.click("#tab-rotate");
    const keys = [];
    const lose = async (route) => {
      keys.push((await (await route.fetch()).json()).api_key);
      await route.abort();
    };
    await page.route("**/keys/current/rotate", lose, { times: 1 });
    await page.click("[data-action=replace]");
    await page.click("#replace-sure [data-action=replace-now]");
    await page.waitForSelector("#unfinished-rotation");
    assert.match(await page.innerText("#rotate"), /response did not arrive.*may have been replaced/s);
    await checkPage(page, "rotate-lost");
    await page.click("#sign-out");
    assert.match(await page.innerText("dialog"), /new key has not arrived yet/);
    await checkPage(page, null);
    await page.getByRole("button", { name: "Stay" }).click();
    await page.click("#unfinished-rotation [data-action=replace-now]");
    await page.waitForSelector("#rotate #api-key");
    const third = (await page.innerText("#rotate #api-key")).match(KEY)[0];
    assert.deepEqual(keys, [third], "the key of the lost response");
    assert.equal((await call(page, "/credits/balance", third)).status, 200);

    // The tab is reloaded before the response arrives: the account page finishes the rotation.
    await page.reload();
    await page.waitForSelector("#tab-rotate");
    await page.click("#tab-rotate");
    await page.route("**/keys/current/rotate", lose, { times: 1 });
    await page.click("[data-action=replace]");
    await page.click("#replace-sure [data-action=replace-now]");
    await page.waitForSelector("#unfinished-rotation");
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
