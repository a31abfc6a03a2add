// Scenes of staying signed in: with a session instead of the key, on several devices, until it ends.

import assert from "node:assert/strict";
import { checkPage, storedData } from "./browser.mjs";
import { act, openKeys, secretOf } from "./keysteps.mjs";
import { call, comeBack, signIn, tabTo } from "./steps.mjs";

const COOKIE = "metering_session";

/** Signs in and asks to be kept signed in, with the keyboard alone. */
async function keep(page, key) {
  await page.goto(`${page.base}/metering/account`);
  await page.fill("#key", key);
  await page.focus("#key");
  await tabTo(page, "#keep");
  await page.keyboard.press("Space");
  await tabTo(page, "#key-button");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#balance");
}

async function devices(page) {
  await page.goto(`${page.base}/metering/account#devices`);
  await page.waitForSelector("#devices-list tbody tr");
}

/** The page asks for a key again. */
async function isSignedOut(page, words) {
  await page.goto(`${page.base}/metering/account`);
  await page.waitForSelector("#sign-in:not([hidden])");
  if (words) assert.match(await page.innerText("#key-error"), words);
}

export const signin = {
  /** A program asks for access. Its owner signs in on the consent page, chooses a budget, and finds its key among the others. */
  async giveAccess(visitor, { key }) {
    const page = await visitor.window({ expected: [400] });
    const back = `${page.base}/docs`;
    const registered = await fetch(`${page.base}/oauth/register`, { method: "POST", body: JSON.stringify({ client_name: "Claude", redirect_uris: [back] }) });
    const { client_id: id } = await registered.json();
    const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    const asked = { response_type: "code", client_id: id, redirect_uri: back, state: "s&1", code_challenge: challenge, code_challenge_method: "S256" };
    const ask = (more = {}) => page.goto(`${page.base}/oauth/authorize?${new URLSearchParams({ ...asked, ...more })}`);
    const landed = async () => {
      await page.waitForURL((url) => url.href.startsWith(`${back}?`));
      return new URL(page.url()).searchParams;
    };

    await ask({ redirect_uri: "https://evil.example/" });
    await page.waitForSelector("#over-step:not([hidden])");
    assert.ok(await page.isHidden("#over-back"), "there is no way to where the program has not registered");
    await ask();
    await page.waitForSelector("#key-form");
    assert.match(await page.innerText("#program-step"), /Claude asks for a key/);
    await checkPage(page, null);
    await page.click("#sign-in-deny");
    assert.equal((await landed()).get("error"), "access_denied");

    // Signing in on the account page leads back.
    await ask();
    await page.click("#key-form ~ p a:last-child");
    await signIn(page, key);
    await page.click("#waiting-program a");
    await page.waitForSelector("#terms-form form");
    await page.fill("#field-limit", "0.5");
    await checkPage(page, null);
    await page.click("#terms-form [type=submit]");
    const response = await landed();
    assert.deepEqual([response.get("state"), response.get("iss")], ["s&1", page.base]);
    const form = new URLSearchParams({ grant_type: "authorization_code", code: response.get("code"), client_id: id, code_verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" });
    const token = await (await fetch(`${page.base}/oauth/token`, { method: "POST", body: form })).json();
    assert.equal((await call(page, "/mpp/ethPrice", token.access_token)).status, 200);
    await page.goto(`${page.base}/metering/account`);
    await openKeys(page);
    assert.match(await page.innerText("#keys"), /Claude/);
    assert.ok(await page.isHidden("#waiting-program"), "nothing waits any more");

    // A wallet signs in on the page itself. The service's part is played, up to the session.
    const node = `data:application/json,${encodeURIComponent('{"result":"0x00"}')}`;
    const signing = await visitor.window({ wallet: { node, account: `0x${"1".repeat(40)}` } });
    const answer = (path, json) => signing.route(`**/api-key/sessions/${path}`, (route) => route.fulfill({ json }));
    await answer("wallet", { token: "eml_1", message: "Sign in" });
    await answer("email/account", { accounts: ["org_1", "org_2"].map((org) => ({ org_id: org, agent_name: org, role: "owner" })) });
    let sent = null;
    await signing.route("**/api-key/sessions/email/confirm", (route) => {
      sent = route.request().postDataJSON();
      return route.continue({ url: `${signing.base}/api-key/sessions`, headers: { ...route.request().headers(), authorization: `Bearer ${key}` } });
    });
    await signing.goto(`${signing.base}/oauth/authorize?${new URLSearchParams(asked)}`);
    await signing.click("#wallet-button");
    await signing.waitForSelector("#account-form:not([hidden])");
    await checkPage(signing, null);
    await signing.check('input[value="org_2"]');
    await signing.click("#account-button");
    await signing.waitForSelector("#terms-form form");
    assert.deepEqual(sent, { token: "eml_1", signature: "0x00", org_id: "org_2" });
  },

  /** Reloads and new tabs stay signed in; signing out, here or elsewhere, and a rotation end it. */
  async keepSignedIn(visitor, { key }) {
    const page = await visitor.window({ expected: [401] });
    await page.goto(`${page.base}/metering/account`);
    await page.waitForSelector("#keep-field:not([hidden])");
    const hints = await page.evaluate(() => ["#username", "#key"].map((id) => document.querySelector(id).autocomplete));
    assert.deepEqual(hints, ["username", "current-password"], "password managers may save both");
    await checkPage(page, null);
    await keep(page, key);
    assert.ok(!(await storedData(page)).includes("sk_live_"), "the key is not stored");
    const [cookie] = (await page.context().cookies(`${page.base}/metering/session/keys`)).filter(({ name }) => name === COOKIE);
    assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, "Strict", "/metering/session"]);
    const elsewhere = await page.context().cookies(`${page.base}/mpp/ethPrice`);
    assert.deepEqual(elsewhere, [], "metered routes get no cookie");
    await page.reload();
    await page.waitForSelector("#balance");
    const tab = await page.context().newPage();
    await page.close();
    tab.base = page.base;
    await tab.goto(`${tab.base}/metering/account`);
    await tab.waitForSelector("#balance");
    await tab.click("#tab-connect");
    await tab.waitForSelector("#panel-connect :text('signed in without your key')");
    await tab.goto(`${tab.base}/docs`);
    await tab.waitForSelector("#nav-account .signed-in");

    const other = await visitor.window({ expected: [401] });
    await keep(other, key);
    await devices(tab);
    assert.equal(await tab.locator("#devices-list tbody tr").count(), 2);
    assert.equal(await tab.locator("#devices-list [data-current]").count(), 1);
    await tab.locator("#devices-list tbody tr").filter({ hasNot: tab.locator("[data-current]") }).getByRole("button").click();
    await tab.waitForFunction(() => document.querySelectorAll("#devices-list tbody tr").length === 1);
    // The page that is open there says so when its user returns.
    await comeBack(other, 60_000);
    await other.waitForSelector("#sign-in:not([hidden])");
    assert.match(await other.innerText("#key-error"), /You were signed out/);

    const out = tab.waitForResponse((response) => response.url().endsWith("/api-key/sessions/current"));
    await tab.click("#sign-out");
    await tab.waitForSelector("#sign-in:not([hidden])");
    await out;
    await isSignedOut(tab);
    assert.deepEqual((await tab.context().cookies(`${tab.base}/metering/session/keys`)).filter(({ name }) => name === COOKIE), []);
    assert.equal((await call(other, "/credits/balance", key)).status, 200, "the key is still live");

    await keep(other, key);
    const rotated = await fetch(`${other.base}/keys/current/rotate`, { method: "POST", headers: { authorization: `Bearer ${key}` } });
    const { api_key: fresh } = await rotated.json();
    await isSignedOut(other, /You were signed out/);

    // Replacing the key on the page keeps the browser signed in.
    await keep(other, fresh);
    await openKeys(other);
    await act(other, "First key", "rotate");
    const kept = other.waitForResponse((response) => response.url().endsWith("/api-key/sessions") && response.status() === 201);
    await other.click("dialog [type=submit]");
    await kept;
    await secretOf(other, "First key", { isOwn: true });
    const last = await other.context().newPage();
    await last.goto(`${other.base}/metering/account`);
    await last.waitForSelector("#balance");
    await last.click("#tab-settings");
    await last.waitForSelector("#devices-list tbody tr");
    await last.getByRole("button", { name: "Sign out everywhere" }).click();
    await last.waitForSelector("#sign-in:not([hidden])");

    // Without the box ticked, a tab stays on its own.
    const { api_key: own } = await (await fetch(`${other.base}/keys/current/rotate`, { method: "POST", headers: { authorization: `Bearer ${await ownKey(other)}` } })).json();
    const plain = await visitor.window();
    await signIn(plain, own);
    await plain.click("#tab-settings");
    await plain.waitForSelector("text=No browser is kept signed in");
    const next = await plain.context().newPage();
    await next.goto(`${plain.base}/metering/account`);
    await next.waitForSelector("#sign-in:not([hidden])");
  },

  /** A service without mail says who can help. */
  async whomToWriteTo(visitor) {
    const page = await visitor.window();
    await page.goto(`${page.base}/metering/account`);
    await page.click("#lost-key summary");
    const link = page.locator("#lost-key-contact a");
    assert.deepEqual([await link.innerText(), await link.getAttribute("href")], ["help@acme.example", "mailto:help@acme.example"]);
    await checkPage(page, null);
  },
};

/** The key that a tab has. */
const ownKey = (page) => page.evaluate(() => sessionStorage.getItem("metering.key"));
