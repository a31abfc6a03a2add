// Scenes of the Webhooks tab, with a server that receives what is sent to it.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { checkPage, shows, storedData } from "./browser.mjs";
import { LOOKS, copied, look, signIn, tabTo, watchClipboard } from "./steps.mjs";
import { act, api, firstIs, menu, openWebhooks, opened, opener, rate, refreshUntil, row, sent, submit, withReceiver } from "./webhooksteps.mjs";

// The packages of all clients are installed in tests/clients.
const { Webhook } = createRequire(new URL("../clients/package.json", import.meta.url))("standardwebhooks");
const SECRET = /whsec_[A-Za-z0-9+/]+=*/;
/** A port that nothing listens on. */
const CLOSED = "https://127.0.0.1:1/closed";

/** The secret in the dialog, which is then closed. It is nowhere on the page after that. */
async function secretOf(page) {
  await page.waitForSelector("#secret-kept");
  const secret = (await page.innerText("dialog #api-key")).match(SECRET)[0];
  await page.keyboard.press("Escape");
  assert.ok(await page.isVisible("#secret-kept"), "Escape does not lose the secret");
  await page.click("#secret-kept");
  await page.waitForSelector("dialog", { state: "detached" });
  assert.ok(!(await shows(page, secret)) && !(await storedData(page)).includes(secret), "the secret is shown once");
  return secret;
}

export const webhooks = {
  /** A webhook is created, tested, rotated, refused by its server, switched on again, changed and deleted. */
  manageWebhooks: withReceiver(async (visitor, { key }, hooks) => {
    const page = await visitor.window({ expected: [400] });
    await watchClipboard(page);
    await signIn(page, key);
    await openWebhooks(page);
    assert.equal(await page.innerText("#no-webhooks"), "None yet.");

    // Errors are next to the field.
    await page.click("#new-webhook");
    await page.click("dialog [type=submit]");
    assert.match(await page.innerText("#field-url-error"), /starts with https/);
    await page.fill("#field-url", "https://10.0.0.1/");
    await page.click("dialog [type=submit]");
    await page.waitForFunction(() => document.querySelector("#field-url-error").textContent.includes("public"));
    assert.ok(await page.evaluate(() => document.activeElement.id === "field-url"));
    await checkPage(page, null);
    await page.fill("#field-url", hooks.url);
    await page.check("#field-events input[value='balance.low']");
    await page.check("#field-events input[value='key.created']");
    await page.click("dialog [type=submit]");
    await page.waitForSelector("#secret-kept");
    await page.click(".secret button");
    const clipboard = await copied(page);
    const secret = await secretOf(page);
    assert.equal(clipboard, secret);
    assert.match(await row(page, hooks.url).innerText(), /Active[\s\S]*balance\.low[\s\S]*key\.created/);

    // A test arrives, and the official library accepts it.
    await act(page, hooks.url, "test");
    await firstIs(page, "delivered");
    assert.match(await sent(page).first().innerText(), /webhook\.test[\s\S]*Delivered[\s\S]*1[\s\S]*Status 204/);
    const [test] = hooks.got;
    assert.equal(new Webhook(secret).verify(test.text, test.headers).type, "webhook.test");

    // So does an event.
    await api(page, key, "POST", "/keys", { name: "crawler" });
    await refreshUntil(page, "key.created", "delivered");
    const made = hooks.got.at(-1);
    assert.equal(new Webhook(secret).verify(made.text, made.headers).data.key_name, "crawler");

    // For a day, requests are signed with both secrets.
    await act(page, hooks.url, "rotate");
    await page.click("dialog [type=submit]");
    const second = await secretOf(page);
    await row(page, hooks.url).getByText("Old secret until").waitFor();
    await act(page, hooks.url, "test");
    await page.waitForFunction(() => document.querySelectorAll("#deliveries tbody tr").length === 3);
    await firstIs(page, "delivered");
    const signed = hooks.got.at(-1);
    for (const one of [secret, second]) assert.equal(new Webhook(one).verify(signed.text, signed.headers).type, "webhook.test");

    // The server wants no more: the delivery is parked, and resent once the webhook is on again.
    hooks.status = 410;
    await act(page, hooks.url, "test");
    await firstIs(page, "parked");
    await page.click("#refresh");
    await row(page, hooks.url).locator("[data-state=gone]").waitFor();
    assert.equal(await row(page, hooks.url).locator("[data-action=test]").count(), 0);
    hooks.status = 200;
    await act(page, hooks.url, "enable");
    await row(page, hooks.url).locator("[data-state=active]").waitFor();
    await page.click("#deliveries [data-choice=parked]");
    await page.waitForFunction(() => document.querySelectorAll("#deliveries tbody tr").length === 1);
    await page.click("#deliveries [data-action=resend]");
    await page.waitForSelector("#no-deliveries");
    await page.click("#deliveries [data-choice='']");
    await refreshUntil(page, "webhook.test", "delivered");
    assert.equal(hooks.got.at(-1).headers["webhook-id"], hooks.got.at(-2).headers["webhook-id"], "the id stays");
    const shown = (count) => page.waitForFunction((count) => document.querySelectorAll("#deliveries tbody tr").length === count, count);
    await page.selectOption("#delivery-events", "key.created");
    await shown(1);
    assert.match(await sent(page).first().innerText(), /key\.created/);
    await page.click("#deliveries [data-choice=parked]");
    await page.waitForSelector("#no-deliveries");
    // A refresh keeps both filters; a test is shown without them.
    await page.click("#refresh");
    await page.waitForFunction(() => !document.querySelector("#refresh").hasAttribute("aria-busy"));
    assert.equal(await page.locator("#delivery-events").inputValue(), "key.created");
    await act(page, hooks.url, "test");
    await firstIs(page, "delivered");
    assert.equal(await page.locator("#delivery-events").inputValue(), "");
    // Changed, switched off, on again and deleted.
    await act(page, hooks.url, "change");
    for (const kind of ["balance.low", "key.created"]) await page.uncheck(`#field-events input[value='${kind}']`);
    await page.fill("#field-url", `${hooks.url}/other`);
    await submit(page);
    const other = `${hooks.url}/other`;
    await row(page, other).waitFor();
    assert.equal(await row(page, other).locator("td[data-label=Events]").innerText(), "All");
    await act(page, other, "disable");
    await submit(page);
    await row(page, other).locator("[data-state=disabled]").waitFor();
    await act(page, other, "enable");
    await row(page, other).locator("[data-state=active]").waitFor();
    await act(page, other, "delete");
    await submit(page);
    await page.waitForSelector("#no-webhooks");
    assert.equal(await page.locator("#deliveries").count(), 0);
    await checkPage(page, null);
  }),

  /** A webhook that fails says since when, why, and how many events wait; each of those says what it waits for. */
  failingWebhook: withReceiver(async (visitor, { key }, hooks) => {
    [hooks.status, hooks.text] = [500, '{"error": "<b>no space left</b>"}'];
    const page = await visitor.window();
    const { data: webhook } = await api(page, key, "POST", "/webhooks", { url: hooks.url });
    for (const name of ["crawler", "laptop"]) await api(page, key, "POST", "/keys", { name });
    for (let tries = 0; ; tries += 1) {
      const { data } = await api(page, key, "GET", `/webhooks/${webhook.id}`);
      if (data.health.failing_since) break;
      assert.ok(tries < 100, "the first attempt fails");
      await page.waitForTimeout(100);
    }
    await signIn(page, key);
    await openWebhooks(page);
    const words = await row(page, hooks.url).locator("td[data-label=State]").innerText();
    assert.match(words, /Failing since \d\d:\d\d\s+HTTP 500, 2 waiting\s+Next attempt \d\d:\d\d/);
    assert.deepEqual(await rate(page, hooks.url), ["0%", "0 of 1"]);
    await act(page, hooks.url, "deliveries");
    await page.waitForSelector("#deliveries table");
    const [second, first] = await sent(page).allInnerTexts();
    assert.match(first, /Status 500: the response status was not 2xx/);
    assert.match(second, /Waits for key\.created of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d/);
    const part = async (name) => JSON.parse(await opened(page).last().locator(`[data-part=${name}]`).innerText());
    await opener(sent(page).first()).click();
    assert.equal((await part("Payload")).data.key_name, "laptop");
    assert.equal(await opened(page).locator("[data-part=Response]").count(), 0, "it was not sent yet");
    assert.ok(await opened(page).locator("pre").evaluate((text) => text.clientWidth > 0.9 * text.closest("table").clientWidth), "as wide as the table");
    await opener(sent(page).last()).click();
    assert.deepEqual([await part("Payload"), await part("Response")], [JSON.parse(hooks.got[0].text), JSON.parse(hooks.text)], "as text");
    assert.equal(await page.locator("#deliveries pre b").count(), 0);
    await checkPage(page, "webhook-failing");
    await opener(sent(page).first()).click();
    assert.equal(await opened(page).count(), 1, "it is closed again");
    hooks.status = 204;
    await sent(page).last().locator("[data-action=resend]").click();
    await refreshUntil(page, "key.created", "delivered");
    await page.click("#refresh");
    await row(page, hooks.url).filter({ hasText: "Last delivered" }).getByText("2 of 2").waitFor();
    assert.deepEqual(await rate(page, hooks.url), ["100%", "2 of 2", "50% at the first attempt"]);
  }),

  /** The threshold of the balance, and of a key's budget. */
  async balanceAlert(visitor, { key }) {
    const page = await visitor.window();
    await signIn(page, key);
    assert.match(await page.innerText("#balance-alert"), /No alert when it runs low/);
    await page.click("#change-alert");
    await page.waitForSelector("dialog");
    assert.match(await page.innerText("#nobody-told"), /No one will be notified/);
    assert.equal(await page.locator("#field-email").count(), 0, "this service sends no mail");
    await page.fill("#field-below", "0");
    await page.click("dialog [type=submit]");
    assert.match(await page.innerText("#field-below-error"), /above zero/);
    await page.fill("#field-below", "1.5");
    await checkPage(page, null);
    await submit(page);
    await page.waitForFunction(() => document.querySelector("#balance-alert").innerText.includes("Alert below 1.5 credits."));
    await page.waitForFunction(() => document.activeElement.id === "change-alert");
    assert.equal((await api(page, key, "GET", "/credits/alert")).below, 1.5);
    await api(page, key, "POST", "/webhooks", { url: CLOSED, events: ["balance.low"] });
    await page.click("#change-alert");
    await page.waitForSelector("dialog");
    assert.ok(await page.isHidden("#nobody-told"), "a webhook is told");
    await page.fill("#field-below", "");
    await submit(page);
    await page.waitForFunction(() => document.querySelector("#balance-alert").innerText.includes("No alert"));
    assert.equal((await api(page, key, "GET", "/credits/alert")).below, null);

    await page.click("#tab-keys");
    await page.click("#new-key");
    await page.fill("#field-name", "crawler");
    assert.ok(await page.isHidden("#field-alert_below"), "without a budget there is nothing to alert about");
    await page.fill("#field-limit", "2");
    await page.fill("#field-alert_below", "0.5");
    await page.click("dialog [type=submit]");
    await page.click("#secret-kept");
    const made = (await api(page, key, "GET", "/keys")).data.find(({ name }) => name === "crawler");
    assert.equal(made.alert_below, 0.5);
    await page.locator("#keys tbody tr", { hasText: "crawler" }).locator("[data-key]").click();
    await page.locator("dialog").getByText("below 0.5 credits").waitFor();
  },

  /** All of it with the keyboard: the focus moves to the next step. */
  webhooksByKeyboard: withReceiver(async (visitor, { key }, hooks) => {
    const page = await visitor.window();
    const press = (name) => page.keyboard.press(name);
    await signIn(page, key);
    await page.focus("#tab-usage");
    await press("ArrowRight");
    await press("ArrowRight");
    await page.waitForSelector("#new-webhook");
    await tabTo(page, "#new-webhook");
    await press("Enter");
    await tabTo(page, "#field-url");
    await page.keyboard.type(hooks.url);
    await tabTo(page, "#field-events input[value='key.leaked']");
    await press("Space");
    await press("Enter");
    await page.waitForSelector("#secret-kept");
    await tabTo(page, "#secret-kept");
    await press("Enter");
    await page.waitForFunction(() => document.activeElement.matches("#webhooks .menu-button"));
    // The menu: arrows, a letter, Escape.
    const chosen = () => page.evaluate(() => document.activeElement.dataset.action);
    await press("Enter");
    assert.equal(await chosen(), "deliveries");
    await press("ArrowUp");
    assert.equal(await chosen(), "delete");
    await press("Escape");
    assert.ok(await page.evaluate(() => document.activeElement.matches("#webhooks .menu-button")));
    await press("ArrowDown");
    await press("t");
    assert.equal(await chosen(), "test");
    await press("Enter");
    await firstIs(page, "delivered");
    assert.equal(await page.evaluate(() => document.activeElement.id), "deliveries-title");
    // The sent payload, opened with the keyboard.
    await tabTo(page, "#deliveries [data-action=payload]");
    await press("Enter");
    await page.waitForSelector("#deliveries .payload pre");
    assert.equal(JSON.parse(await page.innerText("#deliveries .payload pre")).type, "webhook.test");
    await tabTo(page, "[data-action=resend]");
    const pressed = await page.$("[data-action=resend]");
    await press("Enter");
    await page.waitForFunction((pressed) => !pressed.isConnected && document.activeElement.dataset.action === "resend", pressed);
    // The filters.
    await page.focus("#deliveries-title");
    await tabTo(page, "#delivery-events");
    await press("End");
    await page.waitForFunction(() => document.querySelector("#delivery-events").value === "webhook.test");
    await page.waitForSelector("#deliveries tbody tr");
    await page.focus("#tab-webhooks");
    await tabTo(page, "#webhooks [data-webhook]");
    await press("Enter");
    await page.waitForFunction(() => document.activeElement.id === "deliveries-title");
    for (const confirm of [false, true]) {
      await page.focus("#tab-webhooks");
      await tabTo(page, "#webhooks .menu-button");
      await press("ArrowUp");
      assert.equal(await chosen(), "delete");
      await press("Enter");
      await page.waitForSelector("dialog");
      if (confirm) break;
      await press("Escape");
      await page.waitForSelector("dialog", { state: "detached" });
      await page.waitForFunction(() => document.activeElement.matches("#webhooks .menu-button"));
    }
    await tabTo(page, "dialog [type=submit]");
    await press("Enter");
    await page.waitForSelector("#no-webhooks");
    await page.waitForFunction(() => document.activeElement.id === "new-webhook");
  }),

  /** A key that may only read sees and does nothing else; lists that fail say so; long ones come in parts. */
  async webhookFailures(visitor, { key }) {
    const page = await visitor.window({ expected: [503, "ERR_FAILED"] });
    const { data: webhook } = await api(page, key, "POST", "/webhooks", { url: CLOSED });
    const { key: reader } = await api(page, key, "POST", "/keys", { name: "reader", scopes: ["read"] });
    await signIn(page, reader);
    await openWebhooks(page);
    assert.match(await page.innerText("#webhooks-not-first"), /first key/);
    assert.deepEqual(await page.locator("#webhooks [role=menuitem]").evaluateAll((all) => all.map(({ dataset }) => dataset.action)), ["deliveries"]);
    await page.click("#webhooks [data-webhook]");
    await page.waitForSelector("#deliveries table, #no-deliveries");
    assert.equal(await page.locator("[data-action=resend]").count(), 0);

    const other = await visitor.window({ expected: [503, "ERR_FAILED"] });
    await signIn(other, key);
    const broken = { status: 503, json: { error: "storage_unavailable", message: "The database is busy." } };
    await other.route("**/webhooks", (route) => route.fulfill(broken), { times: 1 });
    await other.click("#tab-webhooks");
    await other.waitForSelector("#panel-webhooks [role=alert]");
    assert.match(await other.innerText("#panel-webhooks [role=alert]"), /The database is busy\./);
    await other.click("#panel-webhooks [role=alert] button");
    await other.waitForSelector("#webhooks table");
    await other.route("**/deliveries?*", (route) => route.fulfill(broken), { times: 1 });
    await other.click("#webhooks [data-webhook]");
    await other.waitForSelector("#deliveries [role=alert] button");
    await other.click("#deliveries [role=alert] button");
    await other.waitForSelector("#deliveries table, #no-deliveries");
    // A delivery that failed need not wait for its next attempt.
    const failed = other.locator("#deliveries tbody tr", { has: other.locator("[data-action=resend]") });
    const again = async () => {
      await other.click("#deliveries [data-choice='']");
      await other.waitForTimeout(200);
    };
    for (let tries = 0; (await failed.count()) === 0; tries += 1) {
      assert.ok(tries < 50, "the first attempt fails");
      await again();
    }
    const attempts = async () => Number(await failed.locator("td[data-label=Attempts]").innerText());
    const before = await attempts();
    assert.match(await failed.locator("[data-action=resend]").innerText(), /^Send now/);
    await failed.locator("[data-action=resend]").click();
    for (let tries = 0; (await attempts()) <= before; tries += 1) {
      assert.ok(tries < 20, "it is sent again at once");
      await again();
    }
    // A lost response: the webhook may be there.
    await other.click("#new-webhook");
    await other.fill("#field-url", CLOSED);
    await other.route("**/webhooks", (route) => route.abort(), { times: 1 });
    await other.click("dialog [type=submit]");
    await other.waitForSelector("#dialog-error:not([hidden])");
    assert.match(await other.innerText("#dialog-error"), /may have been created/);
    await other.keyboard.press("Escape");
    // Parts of a long list.
    const item = (id) => ({ id, webhook_id: webhook.id, state: "parked", attempts: 12, next_attempt_at: null, last_attempt_at: "2026-11-21T08:00:00.000Z", last_status: null, last_error: "connection refused", event: { id: `evt_${id}`, type: "balance.low", timestamp: "2026-11-18T08:00:00.000Z", data: {} } });
    await other.route("**/deliveries?*", (route) => {
      const after = Number(new URL(route.request().url()).searchParams.get("after") ?? 0);
      return route.fulfill({ json: { data: Array.from({ length: 25 }, (_, place) => item(100 - after - place)), next: after < 25 ? String(after + 25) : null } });
    });
    await other.click("#webhooks [data-webhook]");
    await other.click("#more-deliveries");
    await other.waitForFunction(() => document.querySelectorAll("#deliveries tbody tr").length === 50);
    assert.equal(await other.locator("#more-deliveries").count(), 0);
    await checkPage(other, null);
  },

  /** The tab and its dialogs, in both schemes at two widths. */
  webhookLooks: withReceiver(async (visitor, { key }, hooks) => {
    const setup = await visitor.window();
    const { data: good } = await api(setup, key, "POST", "/webhooks", { url: hooks.url });
    const { data: closed } = await api(setup, key, "POST", "/webhooks", { url: `${CLOSED}/a-team-with-a-long-name/${"path-".repeat(20)}`, events: ["balance.low", "balance.exhausted", "budget.exhausted"] });
    const { data: off } = await api(setup, key, "POST", "/webhooks", { url: `${hooks.url}/off`, events: ["key.leaked"] });
    await api(setup, key, "POST", `/webhooks/${good.id}/rotate`, {});
    await api(setup, key, "PATCH", `/webhooks/${off.id}`, { disabled: true });
    await api(setup, key, "PUT", "/credits/alert", { below: "1" });
    for (const name of ["crawler", "laptop"]) await api(setup, key, "POST", "/keys", { name });
    for (const { id } of [closed, good]) await api(setup, key, "POST", `/webhooks/${id}/test`);
    for (const options of LOOKS) {
      const page = await visitor.window({ ...options, expected: [400] });
      await signIn(page, key);
      await checkPage(page, `alert-${look(options)}`);
      await page.click("#change-alert");
      await page.waitForSelector("dialog");
      await checkPage(page, `alert-dialog-${look(options)}`, { top: "dialog" });
      await page.keyboard.press("Escape");
      await openWebhooks(page);
      await page.waitForSelector("#webhooks table");
      await act(page, hooks.url, "deliveries");
      await page.waitForSelector("#deliveries table");
      await checkPage(page, `webhooks-${look(options)}`);
      await menu(page, hooks.url).click();
      await checkPage(page, null);
      await page.keyboard.press("Escape");
      await page.click(`[data-webhook="${closed.id}"]`);
      await page.waitForSelector("#deliveries [data-state=pending]");
      await checkPage(page, `webhook-pending-${look(options)}`);
      await page.click("#new-webhook");
      await checkPage(page, `new-webhook-${look(options)}`, { top: "dialog" });
      await page.fill("#field-url", "https://10.0.0.1/");
      await page.click("dialog [type=submit]");
      await page.waitForSelector("#field-url-error:not([hidden])");
      await checkPage(page, `new-webhook-error-${look(options)}`, { top: "dialog" });
      await page.keyboard.press("Escape");
      for (const action of ["change", "rotate", "disable", "delete"]) {
        await act(page, hooks.url, action);
        await page.waitForSelector("dialog");
        await checkPage(page, `webhook-${action}-${look(options)}`, { top: "dialog" });
        await page.keyboard.press("Escape");
        await page.waitForSelector("dialog", { state: "detached" });
      }
      await act(page, hooks.url, "rotate");
      await page.click("dialog [type=submit]");
      await page.waitForSelector("#secret-kept");
      await checkPage(page, `webhook-secret-${look(options)}`, { top: "dialog" });
      await page.click("#secret-kept");
    }
  }),
};
