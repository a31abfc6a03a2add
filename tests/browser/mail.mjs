// Scenes in which a user follows links that came by mail.

import assert from "node:assert/strict";
import { checkPage, storedData } from "./browser.mjs";
import { KEY, LOOKS, call, look, signIn, signUp, tabTo } from "./steps.mjs";
import { act } from "./webhooksteps.mjs";

const balanceOf = async (page, key) => (await call(page, "/credits/balance", key)).json();
const noToken = async (page) => {
  assert.ok(!page.url().includes("eml_"), page.url());
  assert.ok(!(await storedData(page)).includes("eml_"), "the token is not kept");
};

/** Imitates mail scanners: every kind of request for the link, without the page's script. */
async function scan(link) {
  for (const method of ["GET", "HEAD"]) assert.equal((await fetch(link, { method })).status, 200, method);
}

export const mail = {
  /** A new account waits for its link, and can ask for another. */
  async mailSignup(visitor) {
    const page = await visitor.window();
    await page.goto(`${page.base}/metering`);
    assert.match(await page.innerText(".signup"), /2 free credits, once your email address is verified/);
    await signUp(page, "page@example.com");
    await page.waitForSelector("#verify-next");
    assert.match(await page.innerText("#verify-next"), /open the link that we sent to page@example\.com to get your 2 free credits/);
    const key = (await page.innerText("#api-key")).match(KEY)[0];
    await checkPage(page, "mail-signup");
    await page.getByRole("link", { name: "Open your account" }).click();
    await page.waitForSelector("#email-pending");
    assert.match(await page.innerText("#email-pending"), /page@example\.com.*2 free credits are added then/s);
    assert.ok(await page.isHidden("#out-of-credits"), "it is not out of credits, but waits for them");
    for (const options of LOOKS) {
      const seen = await visitor.window(options);
      await signIn(seen, key);
      await seen.waitForSelector("#email-pending");
      await checkPage(seen, `mail-account-${look(options)}`);
    }
    await tabTo(page, "[data-action=send-link]");
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=A new link is on its way");
  },

  /** The link verifies the address once, when its button is pressed. */
  async mailVerify(visitor, { link, key, taken }) {
    await scan(link);
    for (const options of LOOKS) {
      const seen = await visitor.window(options);
      await seen.goto(link);
      await seen.waitForSelector("#link-button:not([disabled])");
      await checkPage(seen, `mail-verify-${look(options)}`);
    }
    const page = await visitor.window({ expected: [409, 410] });
    assert.equal((await balanceOf(page, key)).credit_balance, 0, "opening the link changed nothing");
    await page.goto(link);
    await tabTo(page, "#link-button");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#done-step:not([hidden])");
    assert.match(await page.innerText("#done-step"), /is verified\. 2 free credits were added to agent\./);
    await noToken(page);
    await checkPage(page, "mail-verified");
    const balance = await balanceOf(page, key);
    assert.deepEqual([balance.credit_balance, balance.email_verification.status], [2, "verified"]);
    assert.equal((await call(page, "/mpp/ethPrice", key)).status, 200);
    // Used, then taken, then no link at all.
    await page.goto("about:blank");
    await page.goto(link);
    await page.click("#link-button");
    await page.waitForSelector("#over-step:not([hidden])");
    assert.match(await page.innerText("main"), /no longer works.*already used/s);
    await page.goto(taken);
    await page.waitForSelector("#link-button:visible");
    await page.click("#link-button");
    await page.waitForSelector("text=Another account has verified");
    await page.goto("about:blank");
    await page.goto(`${page.base}/metering/verify-email`);
    await page.waitForSelector("text=Open the link in the mail");
    for (const options of LOOKS) {
      const seen = await visitor.window(options);
      await seen.goto(`${seen.base}/metering/verify-email`);
      await seen.waitForSelector("text=Open the link in the mail");
      await checkPage(seen, null);
    }
    await signIn(page, key);
    assert.ok(await page.isHidden("#email-pending"));
    await page.click("#tab-keys");
    assert.match(await page.innerText("#email-recovery"), /is verified.*replace it by email/s);
    await checkPage(page, "mail-rotate");
  },

  /** A user asks for a link to replace a lost key. */
  async mailAsk(visitor, { email }) {
    const page = await visitor.window();
    await page.goto(`${page.base}/metering/account`);
    await page.click("#lost-key summary");
    await checkPage(page, "mail-lost-key");
    await page.getByRole("link", { name: "Sign in or replace it by email" }).click();
    await page.waitForSelector("#ask-button:not([disabled])");
    for (const options of LOOKS) {
      const seen = await visitor.window(options);
      await seen.goto(`${seen.base}/metering/recover`);
      await seen.waitForSelector("#ask-button:not([disabled])");
      await checkPage(seen, `mail-recover-${look(options)}`);
    }
    await page.click("#ask-button");
    assert.match(await page.innerText("#email-error"), /Enter your email address/);
    for (const address of ["nobody@example.com", email]) {
      await page.check("#ask-replace");
      await page.fill("#email", address);
      await page.keyboard.press("Enter");
      await page.waitForSelector("#sent-step:not([hidden])");
      assert.equal((await page.innerText("#sent-step")).split(address).length, 2, "the same words for every address");
      await checkPage(page, "mail-sent");
      if (address !== email) await page.click("#again");
    }
  },

  /** The link signs the browser in once, when its button is pressed; the key stays. */
  async mailSignIn(visitor, { link, key, account }) {
    await scan(link);
    for (const options of LOOKS) {
      const seen = await visitor.window(options);
      await seen.goto(link);
      await seen.waitForSelector("#sign-in-button:not([disabled])");
      await seen.waitForSelector(`#sign-in-account code:text-is("${account}")`);
      assert.match(await seen.innerText("#sign-in-account"), /signs you in to agent \(org_\w+\)/);
      await checkPage(seen, null);
    }
    const page = await visitor.window();
    await page.goto(link);
    await tabTo(page, "#sign-in-button");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#balance");
    await noToken(page);
    await page.reload();
    await page.waitForSelector("#balance");
    assert.equal((await call(page, "/credits/balance", key)).status, 200, "the key stays as it is");
    const late = await visitor.window({ expected: [410] });
    await late.goto(link);
    await late.waitForSelector("#ask-notice:not([hidden])");
    assert.match(await late.innerText("#ask-notice"), /no longer works/);
  },

  /** The link replaces the key once, when its button is pressed; a lost response loses no key. */
  async mailRecover(visitor, { link, old, kept, expired }) {
    await scan(link);
    for (const options of LOOKS) {
      const seen = await visitor.window(options);
      await seen.goto(link);
      await seen.waitForSelector("#confirm-button:not([disabled])");
      await checkPage(seen, `mail-confirm-${look(options)}`);
    }
    const page = await visitor.window({ expected: [410, "ERR_FAILED"] });
    assert.equal((await call(page, "/credits/balance", old)).status, 200, "opening the link changed nothing");
    await page.goto(link);
    const keys = [];
    const lose = async (route) => {
      keys.push((await (await route.fetch()).json()).api_key);
      await route.abort();
    };
    await page.route("**/api-key/recover/email/confirm", lose, { times: 1 });
    await tabTo(page, "#confirm-button");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#confirm-error:not([hidden])");
    await checkPage(page, "mail-confirm-lost");
    assert.equal((await call(page, "/credits/balance", old)).status, 401, "the key was replaced, but the response was lost");
    await page.reload();
    await page.click("#confirm-button");
    await page.waitForSelector("#done-step #api-key");
    const key = (await page.innerText("#done-step #api-key")).match(KEY)[0];
    assert.deepEqual(keys, [key], "the key of the lost response");
    assert.equal((await call(page, "/credits/balance", key)).status, 200);
    await noToken(page);
    assert.match(await page.innerText("#remaining-keys"), /One other key still works.*crawler key_/s);
    assert.equal((await call(page, "/credits/balance", kept)).status, 200);
    await checkPage(page, "mail-recovered");
    await page.getByRole("link", { name: "Open your account" }).click();
    await page.waitForSelector("#balance");
    for (const dead of [link, expired]) {
      const late = await visitor.window({ expected: [410] });
      await late.goto(dead);
      await late.click("#confirm-button");
      await late.waitForSelector("#ask-notice:not([hidden])");
      assert.match(await late.innerText("#ask-notice"), /no longer works/);
      await noToken(late);
      await checkPage(late, "mail-late");
    }
  },

  /** An alert is mailed to a verified address by default, and is switched off in its dialog or like a webhook. */
  async mailAlert(visitor, { key, email }) {
    const page = await visitor.window();
    const alert = async () => (await call(page, "/credits/alert", key)).json();
    await signIn(page, key);
    await tabTo(page, "#change-alert");
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog");
    assert.ok(await page.isChecked("#field-email"), "mail is the default");
    assert.ok(await page.isHidden("#nobody-told"));
    await page.uncheck("#field-email");
    assert.match(await page.innerText("#nobody-told"), /No one will be notified.*email is off/s);
    await checkPage(page, null);
    await page.check("#field-email");
    await page.fill("#field-below", "1.5");
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog", { state: "detached" });
    assert.deepEqual(await alert(), { org_id: (await balanceOf(page, key)).org_id, below: 1.5, email: true });

    await page.click("#tab-webhooks");
    const row = page.locator("#webhooks tbody tr", { hasText: `Email to ${email}` });
    await row.waitFor();
    assert.deepEqual(await row.locator("[role=menuitem]").evaluateAll((all) => all.map(({ dataset }) => dataset.action)), ["deliveries", "test", "disable", "delete"]);
    await act(page, `Email to ${email}`, "test");
    await page.waitForSelector("#deliveries tbody tr:first-child [data-state=delivered]");
    await checkPage(page, null);
    await act(page, `Email to ${email}`, "disable");
    await page.click("dialog [type=submit]");
    await row.locator("[data-state=disabled]").waitFor();
    assert.equal((await alert()).email, false);
  },
};
