// The webhooks of an account in the operators' console, with a server that receives what is sent to it.

import assert from "node:assert/strict";
import { checkPage } from "./browser.mjs";
import { enter, newestEntry, says, send, visit } from "./console-steps.mjs";
import { LOOKS } from "./steps.mjs";
import { api, withReceiver } from "./webhooksteps.mjs";

const PANEL = "#panel-webhooks";
const LIST = `${PANEL} table:has([data-delivery])`;

/** Waits until the list has this many deliveries. */
const shows = (page, count) => page.waitForFunction((wanted) => document.querySelectorAll("#panel-webhooks [data-delivery]").length === wanted, count);

/** The states of the deliveries that are shown. */
const states = async (page) => (await page.locator(`${LIST} td[data-label=State] .tag`).allInnerTexts()).map((text) => text.toLowerCase());

export const consoleWebhooks = {
  /** Deliveries are filtered and opened, and one that its receiver refused is sent again, with a reason. */
  consoleWebhooks: withReceiver(async (visitor, { token, service, key, org }, hooks) => {
    const customer = (method, path, body) => api({ base: service }, key, method, path, body);
    const page = await visitor.window(LOOKS[2]);
    const { data: webhook } = await customer("POST", "/webhooks", { url: hooks.url });
    const path = `/webhooks/${webhook.id}`;
    const newestIs = async (state) => {
      for (let tries = 0; ; tries += 1) {
        const { data } = await customer("GET", `${path}/deliveries`);
        if (data[0]?.state === state) return;
        assert.ok(tries < 100, `the newest delivery is ${data[0]?.state}`);
        await page.waitForTimeout(100);
      }
    };
    for (const [status, state] of [[204, "delivered"], [410, "parked"]]) {
      hooks.status = status;
      await customer("POST", `${path}/test`);
      await newestIs(state);
    }

    await enter(page, token, `accounts/${org}?tab=webhooks`);
    await shows(page, 2);
    assert.match(await page.innerText(`${PANEL} tbody`), /127\.0\.0\.1[\s\S]*Gone[\s\S]*It responded 410/i);
    assert.match(await page.innerText(`${PANEL} td[data-label='Delivered, 7 days']`), /^50%\s+1 of 2$/);
    assert.deepEqual(await states(page), ["parked", "delivered"]);
    await page.selectOption("#filter-state", "pending");
    await page.waitForSelector(`${PANEL} .empty:has-text("No delivery matches")`);
    await page.selectOption("#filter-state", "parked");
    await shows(page, 1);
    assert.match(await page.innerText(LIST), /webhook\.test[\s\S]*410/);
    await page.click(`${LIST} summary`);
    assert.equal(JSON.parse(await page.innerText(`${LIST} pre`)).type, "webhook.test");
    await checkPage(page, null);

    hooks.status = 204;
    await customer("PATCH", path, { disabled: false });
    await page.click(`${LIST} button[id^=resend-]`);
    await send(page, { reason: "Their server is back" });
    await says(page, "The event is sent again.");
    await newestIs("delivered");
    const [, refused, again] = hooks.got.map(({ headers }) => headers["webhook-id"]);
    assert.equal(again, refused, "the id stays");
    await page.selectOption("#filter-state", "delivered");
    await page.waitForFunction((list) => document.querySelectorAll(`${list} .tag-good`).length === 2, LIST);
    await visit(page, "Audit log");
    assert.deepEqual(await newestEntry(page), { action: "webhook.resend", reason: "Their server is back", result: "done" });
  }),
};
