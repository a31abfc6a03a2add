// Scenes of an account with child accounts, and of members who may not do everything.

import assert from "node:assert/strict";
import { checkPage } from "./browser.mjs";
import { KEY, call, choose, signIn } from "./steps.mjs";

const PART = "#children";

const act = (page, name, action) => choose(page.locator(`${PART} tbody tr`, { hasText: name }), action);

/** Sends the open dialog, and waits until it is closed and the accounts are loaded. */
async function submit(page) {
  const loaded = page.waitForResponse((response) => response.url().includes("/accounts?"));
  await page.click("dialog [type=submit]");
  await loaded;
  await page.waitForSelector("dialog", { state: "detached" });
}

async function create(page, name) {
  await page.click("#new-child");
  await page.fill("#field-agent_name", name);
  await page.click("dialog [type=submit]");
  await page.waitForSelector("#secret-kept");
  const key = (await page.innerText("dialog #api-key")).match(KEY)[0];
  await page.click("#secret-kept");
  await page.locator(`${PART} tbody tr`, { hasText: name }).waitFor();
  return key;
}

async function move(page, name, action, credits) {
  await act(page, name, action);
  await page.fill("#field-credits", credits);
  await submit(page);
}

const balanceOf = async (page, key) => (await (await call(page, "/credits/balance", key)).json()).credit_balance;

export const children = {
  /** Child accounts are created, found, filled, emptied, limited and closed. */
  async children(visitor, { key }) {
    const page = await visitor.window({ expected: [400, 409] });
    await signIn(page, key);
    await page.click("#tab-settings");
    await page.waitForSelector(`${PART}:not([hidden])`);
    const first = await create(page, "customer-1");
    await create(page, "customer-2");
    await move(page, "customer-1", "give", "1.5");
    assert.deepEqual([await balanceOf(page, first), await balanceOf(page, key)], [1.5, 0.5]);
    await act(page, "customer-1", "take");
    await page.fill("#field-credits", "1.75");
    await page.click("dialog [type=submit]");
    await page.waitForSelector("#dialog-error:not([hidden])");
    assert.match(await page.innerText("#dialog-error"), /has 1\.5 left/);
    await page.fill("#field-credits", "0.5");
    await submit(page);
    await act(page, "customer-1", "limits");
    await page.fill("#field-requests_per_minute", "1000000");
    await page.click("dialog [type=submit]");
    await page.waitForSelector("#dialog-error:not([hidden])");
    assert.match(await page.innerText("#dialog-error"), /limits must not exceed those of the parent/);
    await page.fill("#field-requests_per_minute", "60");
    await submit(page);
    assert.match(await page.innerText(`${PART} tbody`), /60 a minute/);
    await page.fill("#search-children", "customer-2");
    await page.waitForFunction(() => document.querySelectorAll("#children tbody tr").length === 1);
    await page.fill("#search-children", "");
    await checkPage(page, null);
    await act(page, "customer-1", "close");
    await submit(page);
    assert.match(await page.innerText(`${PART} tbody`), /closed/);
    assert.equal(await balanceOf(page, key), 2);
    assert.equal((await call(page, "/credits/balance", first)).status, 401);
  },

  /** A viewer gets no buttons for calls that the service would refuse, and sees who can do the rest. */
  async viewer(visitor, { key }) {
    const page = await visitor.window();
    await page.route("**/credits/balance", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), member: { role: "viewer", may: ["read"] } } });
    });
    await signIn(page, key);
    assert.equal(await page.locator("#change-alert").count(), 0);
    await page.click("#tab-keys");
    await page.waitForSelector("#keys-no-scope");
    assert.match(await page.innerText("#keys-no-scope"), /Your role in this account is viewer\. Only owners and developers/);
    assert.equal(await page.locator("#new-key, #keys [data-action=rotate]").count(), 0);
    await page.click("#tab-settings");
    await page.waitForSelector(`${PART}:not([hidden])`);
    assert.equal(await page.locator("#new-child").count(), 0);
    await page.click("#tab-webhooks");
    await page.waitForSelector("#webhooks-not-first");
    assert.equal(await page.locator("#new-webhook").count(), 0);
    await page.click("#tab-top-up");
    await page.waitForSelector("#panel-top-up [data-withheld=pay]");
    await checkPage(page, null);
  },
};
