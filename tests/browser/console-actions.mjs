// What operators do: accounts, plans, the catalogue, other operators. Each action is in the audit log after.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { checkPage, shows } from "./browser.mjs";
import { TOKEN, enter, newestEntry, says, secretOnce, send, shown, visit } from "./console-steps.mjs";
import { KEY } from "./steps.mjs";

/** The status of a request to the service with this key. */
const status = async (service, key) => (await fetch(`${service}/credits/balance`, { headers: { authorization: `Bearer ${key}` } })).status;

/** Saves the list that is shown. */
async function save(page) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#view [data-download]")]);
  return readFileSync(await download.path(), "utf8");
}

export const consoleActions = {
  /** Finds accounts, opens one, and takes every action on it. */
  async consoleAccounts(visitor, { token, service, accounts }) {
    const page = await visitor.window({ expected: [409] });
    await enter(page, token, "accounts");
    const names = () => page.locator("#view tbody th a").allInnerTexts();
    assert.deepEqual(await names(), ["third", "second", "first"], "newest first");
    const table = [["second", ["second"]], ["FIRST@example.com", ["first"]], [accounts.third, ["third"]], ["nobody", []], ["", ["third", "second", "first"]]];
    for (const [text, expected] of table) {
      await page.fill("#search", text);
      await page.keyboard.press("Enter");
      await page.waitForSelector(expected.length > 0 ? `#found:has-text("${expected.length} account")` : ".empty");
      assert.deepEqual(await names(), expected, text);
      assert.equal(new URL(page.url()).hash, text ? `#/accounts?search=${encodeURIComponent(text)}` : "#/accounts");
    }
    // A list that the service sends in parts.
    await page.route("**/admin/accounts?*", (route) => route.continue({ url: route.request().url().replace("limit=50", "limit=2") }));
    await page.reload();
    await shown(page);
    assert.deepEqual(await names(), ["third", "second"]);
    await page.click(".table-more");
    await page.waitForFunction(() => document.querySelectorAll("#view tbody tr").length === 3);
    assert.deepEqual(await names(), ["third", "second", "first"]);
    assert.ok(await page.evaluate(() => document.activeElement.contains(document.querySelector("#view table"))), "the focus is on the list");
    await page.unroute("**/admin/accounts?*");
    await page.click(`text="second"`);
    await page.waitForSelector('#view-title:has-text("second")');
    assert.equal(await page.innerText("#view-title"), "second");
    assert.equal(await page.innerText(".lead .tag"), "Active");
    assert.equal(await page.evaluate(() => document.activeElement.id), "view-title", "a new view has the focus");
    assert.match(await page.title(), /^second · /);

    await page.click("#grant");
    await page.click("dialog [type=submit]");
    assert.match(await page.innerText("#field-credits-error"), /above zero/);
    assert.equal(await page.evaluate(() => document.activeElement.id), "field-credits");
    await page.fill("#field-credits", "1.25");
    await page.click("dialog [type=submit]");
    assert.match(await page.innerText("#field-reason-error"), /^Say why/);
    assert.equal(await page.getAttribute("#field-reason", "aria-invalid"), "true");
    await checkPage(page, null);
    await send(page, { note: "Sorry about Friday", reason: "Outage on Friday" });
    await says(page, "Granted 1.25 credits.");
    assert.equal(await page.innerText("#balance"), "3.25");
    assert.equal(await page.evaluate(() => document.activeElement.id), "grant", "the focus returns");
    assert.match(await page.innerText("#panel-ledger"), /Sorry about Friday/);

    await page.click("#adjust");
    await page.fill("#field-credits", "-0.25");
    await page.click("dialog [type=submit]");
    assert.ok(await page.isVisible("#field-note-error"), "the owner sees why");
    await send(page, { note: "Corrected", reason: "Granted too much" });
    await says(page, "Changed the balance by -0.25 credits.");
    assert.equal(await page.innerText("#balance"), "3");
    await page.click("#limits");
    assert.equal(await page.inputValue("#field-requests_per_minute"), "0");
    await send(page, { requests_per_minute: "60", requests_per_day: "1000", reason: "Asked for it" });
    await says(page, "Set the rate limits.");
    assert.deepEqual([await page.innerText("#per-minute"), await page.innerText("#per-day")], ["60", "1,000"]);

    await page.click("#note");
    await page.click("dialog [type=submit]");
    assert.match(await page.innerText("#field-note-error"), /^Fill in/);
    await send(page, { note: "Pays by bank transfer" });
    await says(page, "Added the note.");
    assert.match((await page.innerText("#notes")).replace(/\s+/g, " "), /Notes Pays by bank transfer \d{4}-.* UTC, by \S/);

    const old = accounts.key;
    assert.equal(await status(service, old), 200);
    await page.click("#rotate");
    await send(page, { reason: "Key was leaked" });
    const fresh = await secretOnce(page, KEY);
    await says(page, "Replaced the key.");
    assert.deepEqual([await status(service, old), await status(service, fresh)], [401, 200]);
    assert.ok(!(await shows(page, fresh)), "the key is shown once");

    await page.click("#tab-history");
    await page.waitForSelector(".log");
    assert.deepEqual(await newestEntry(page), { action: "account.rotate_key", reason: "Key was leaked", result: "done" });
    await page.click("#revoke");
    await page.fill("#field-confirmation", "Second");
    await page.fill("#field-reason", "Abuse");
    await page.click("dialog [type=submit]");
    assert.match(await page.innerText("#field-confirmation-error"), /exactly/);
    await checkPage(page, null);
    await send(page, { confirmation: "second" });
    await says(page, "Revoked the account.");
    assert.equal(await status(service, fresh), 401);
    assert.ok(await page.isHidden("#grant"), "a revoked account gets no credits");
    // The tab that was open is open again.
    await page.waitForSelector("#panel-history .log");
    const reasons = await page.locator(".log-reason").allInnerTexts();
    assert.deepEqual(reasons.slice(0, 6), ["Abuse", "Key was leaked", "A note for other operators", "Asked for it", "Granted too much", "Outage on Friday"]);
    const grant = page.locator('.log > [data-action="account.grant"]');
    await grant.locator("summary").click();
    assert.match((await grant.innerText()).replace(/\s+/g, " "), /total_credits_granted 2 3\.25/);
    await checkPage(page, null);

    await page.click("#erase");
    await page.waitForSelector('#erased:has-text("profile: 1")');
    const [org] = (await page.innerText("dialog")).match(/org_\w+/);
    await checkPage(page, null);
    await send(page, { confirmation: org, reason: "Asked to be forgotten" });
    await says(page, "Erased the owner.");
    await page.waitForSelector('#view-title:has-text("erased")');
    assert.equal(await page.locator("#notes").count(), 0);

    await visit(page, "Accounts");
    await page.click("#new-account");
    await send(page, { agent_name: "fourth", email: "fourth@example.com", credits: "0.5", reason: "Trial" });
    const key = await secretOnce(page, KEY);
    await page.waitForSelector(`#view-title:has-text("fourth")`);
    assert.equal(await status(service, key), 200);
    await visit(page, "Accounts");
    await page.click("#new-account");
    await page.fill("#field-agent_name", "fifth");
    await page.fill("#field-email", "fourth@example.com");
    await page.fill("#field-reason", "Again");
    await page.click("dialog [type=submit]");
    await page.waitForSelector("#dialog-error:not([hidden])");
    assert.match(await page.innerText("#dialog-error"), /belongs to another account/);
    await checkPage(page, null);
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.activeElement.id), "new-account");
  },

  /** Sells a plan, changes it, and removes it; checks catalogue files. */
  async consolePlans(visitor, { token, valid, invalid }) {
    const page = await visitor.window();
    await enter(page, token, "plans");
    await page.click("#new-plan");
    await send(page, {
      id: "tiny",
      chain_id: "8453",
      label: "Tiny",
      token_amount: "1.5",
      token_symbol: "USDC",
      token_contract: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
      token_decimals: "6",
      credits: "3",
      bonus_credits: "0.25",
      reason: "Asked for by many",
    });
    await says(page, "Created Tiny.");
    const row = async () => (await page.locator("tbody tr").first().innerText()).replace(/\s+/g, " ");
    assert.match(await row(), /Tiny tiny 1\.5 USDC on .* 3 and 0\.25 bonus 0 on sale/);
    await page.click("#edit-8453-tiny");
    assert.equal(await page.inputValue("#field-token_amount"), "1.5");
    await page.fill("#field-token_amount", "1.1234567");
    await page.fill("#field-reason", "Too fine");
    await checkPage(page, null);
    await send(page, { token_amount: "2", reason: "Costs rose" });
    await says(page, "Saved Tiny.");
    assert.match(await row(), /2 USDC/);
    await page.click("#deactivate-8453-tiny");
    await send(page, { reason: "Sold out" });
    await says(page, "Took the plan off sale.");
    assert.match(await row(), /off sale/);
    await checkPage(page, null);
    await page.selectOption("#filter-state", "on");
    await page.waitForSelector('.empty:has-text("No plan matches")');
    await page.selectOption("#filter-state", "off");
    await page.waitForSelector("#activate-8453-tiny");
    assert.equal(new URL(page.url()).hash, "#/plans?state=off");
    assert.match(await save(page), /^chain_id,id,label,.*\r\n8453,tiny,Tiny,2,USDC,0x833589fc.*,false,0\r\n$/is);
    await page.selectOption("#filter-state", "");
    await page.waitForFunction(() => location.hash === "#/plans");
    await page.click("#activate-8453-tiny");
    await send(page, { reason: "Back again" });
    await says(page, "Put the plan on sale.");
    await page.click("#remove-8453-tiny");
    await send(page, { reason: "Nobody wants it" });
    await says(page, "Removed the plan.");
    assert.ok(await page.isVisible(".empty"));
    await visit(page, "Audit log");
    assert.deepEqual((await page.locator(".log > li").evaluateAll((items) => items.map((item) => item.dataset.action))).slice(0, 5), ["plan.remove", "plan.activate", "plan.deactivate", "plan.set", "plan.set"]);
    assert.deepEqual((await page.locator(".log-reason").allInnerTexts()).slice(0, 5), ["Nobody wants it", "Back again", "Sold out", "Costs rose", "Asked for by many"]);

    await visit(page, "Catalogue");
    assert.match(await page.innerText("#routes"), /\/mpp\/ethPrice\s+.*\s+Prices\s+0\.0006944 credits\s+weight 5/);
    await page.fill("#route-filter", "ethprice");
    assert.equal(await page.innerText("#routes-found"), "2 routes");
    await page.setInputFiles("#catalogue-file", invalid);
    await page.waitForSelector("#check-result .notice-bad");
    assert.match(await page.innerText("#check-result"), /is not valid\.\s+.*credit_wieght/s);
    await checkPage(page, null);
    await page.setInputFiles("#catalogue-file", valid);
    await page.waitForSelector("#check-result .notice-good");
    const result = (await page.innerText("#check-result")).replace(/\s+/g, " ");
    assert.match(result, /is valid\. It has \d+ routes\. 2 routes would change\./);
    assert.match(result, /GET \/mpp\/ethPrice New price 0\.0006944444 0\.01/i);
    assert.match(result, /GET \/mpp\/extra Added – 0\.0001388889/i);
    await checkPage(page, null);
    // Dropped instead of chosen.
    await page.evaluate((text) => {
      const data = new DataTransfer();
      data.items.add(new File([text], "dropped.json"));
      document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }, "[");
    await page.waitForSelector('#check-result:has-text("dropped.json is not valid")');
  },

  /** The audit log and its file; operators come and go. */
  async consoleOperators(visitor, { token, org }) {
    const page = await visitor.window({ expected: [401, 409] });
    await enter(page, token, "operators");
    assert.match(await page.innerText("tbody"), /boss \(you\)/);
    await page.click("#new-operator");
    await send(page, { name: "helper", role: "viewer", reason: "Support desk" });
    const issued = await secretOnce(page, TOKEN);
    await says(page, "Created helper.");
    assert.ok(!(await shows(page, issued)), "the token is shown once");
    await page.click("#new-operator");
    await page.fill("#field-name", "helper");
    await page.fill("#field-reason", "Once more");
    await page.click("dialog [type=submit]");
    await page.waitForSelector("dialog [role=alert]:not([hidden])");
    await checkPage(page, null);
    await page.keyboard.press("Escape");

    const other = await visitor.window({ expected: [401] });
    await enter(other, issued, "operators");
    assert.match(await other.innerText("#who"), /helper\s+viewer/);
    await page.click("#revoke-helper");
    await send(page, { reason: "Left the company" });
    await says(page, "Revoked helper.");
    assert.match((await page.innerText("tbody")).replace(/\s+/g, " "), /helper viewer [\d-]+ Revoked/);
    await page.selectOption("#filter-status", "active");
    await page.waitForFunction(() => !document.querySelector("tbody").textContent.includes("helper"));
    assert.equal(new URL(page.url()).hash, "#/operators?status=active");
    assert.match(await save(page), /^name,role,status,created_at,revoked_at\r\nboss,manager,active,/);
    await other.click('#console-nav >> text="Plans"');
    await other.waitForSelector("#sign-in:not([hidden])");
    assert.match(await other.innerText("#token-error"), /session has ended/);
    assert.ok(!(await shows(other, "boss")), "nothing of the view is left");
    await checkPage(other, null);

    await visit(page, "Audit log");
    const entries = () => page.locator(".log > li").evaluateAll((items) => items.map((item) => item.dataset.action));
    assert.deepEqual((await entries()).slice(0, 3), ["operator.revoke", "operator.create", "operator.create"]);
    assert.equal(await page.locator(".log > li .tag-bad").first().innerText(), "refused");
    const whole = await save(page);
    assert.match(whole, /^id,at,actor,action,subject,reason,/);
    for (const text of ["Left the company", "Support desk", "operator:boss", org]) assert.ok(whole.includes(text), text);
    await page.fill("#subject", org);
    await page.keyboard.press("Enter");
    await page.waitForSelector(`#log-status:has-text("${org}")`);
    assert.deepEqual(await entries(), ["account.create"]);
    const part = await save(page);
    assert.ok(part.includes(org) && !part.includes("Support desk"), part);
    await page.reload();
    await shown(page);
    assert.equal(await page.inputValue("#subject"), org, "the filter is in the URL");
    await checkPage(page, null);
  },

  /** Responses that are lost or late: the page claims nothing that is not known, and no digit is lost. */
  async consoleFailures(visitor, { token, org }) {
    const page = await visitor.window({ expected: [400, 404, 500, "ERR_FAILED"] });
    await enter(page, token, `accounts/${org}`);
    const bodies = [];
    await page.route("**/grant", async (route) => {
      bodies.push(route.request().postData());
      // The service takes the action, and the response is lost.
      await route.fetch();
      await route.abort();
    });
    await page.click("#grant");
    await page.fill("#field-credits", "1234567.12345678");
    await page.fill("#field-reason", "All digits");
    await page.click("dialog [type=submit]");
    await page.waitForSelector("#dialog-error:not([hidden])");
    assert.match(await page.innerText("#dialog-error"), /may have been taken: look at the audit log/);
    assert.deepEqual(bodies, ['{"credits":1234567.12345678,"reason":"All digits"}']);
    await checkPage(page, null);
    await page.keyboard.press("Escape");
    await page.click("#tab-history");
    await page.waitForSelector(".log");
    assert.deepEqual(await newestEntry(page), { action: "account.grant", reason: "All digits", result: "done" });
    await page.reload();
    await page.waitForSelector("#balance [data-exact]");
    assert.equal(await page.getAttribute("#balance [data-exact]", "data-exact"), "1234569.12345678");

    const broken = (route) => route.fulfill({ status: 500, contentType: "application/json", body: '{"error":"internal","message":"The report failed."}' });
    await page.route("**/admin/report?*", broken);
    await visit(page, "Overview");
    await page.waitForSelector("#health table");
    assert.match(await page.innerText("#view"), /The report failed\./);
    await page.route("**/admin/plans", broken);
    await page.click('#console-nav >> text="Plans"');
    await page.waitForSelector('#view-title:has-text("Could not load this page")');
    await checkPage(page, null);
    await page.unroute("**/admin/plans");
    await page.click('text="Try again"');
    await page.waitForSelector('#view-title:has-text("Plans")');
    // A view that is left before it is loaded does not come back.
    let open;
    const gate = new Promise((resolve) => (open = resolve));
    await page.route("**/admin/operators", async (route) => {
      await gate;
      await route.continue();
    });
    await page.click('#console-nav >> text="Operators"');
    await visit(page, "Catalogue");
    const late = page.waitForResponse("**/admin/operators");
    open();
    await late;
    await page.waitForTimeout(200);
    assert.equal(await page.innerText("#view-title"), "Catalogue");
    await page.goto(`${page.base}/console#/nothing`);
    await page.waitForSelector('#view-title:has-text("No such page")');
    await page.goto(`${page.base}/console#/accounts/org_unknown`);
    await page.waitForSelector('#view-title:has-text("Could not load this page")');
  },
};
