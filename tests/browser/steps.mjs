// Steps that many scenes share.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

export const KEY = /sk_live_[0-9A-Za-z]{38}/;

/** Fills the signup form and sends it. */
export async function signUp(page, email) {
  await page.fill("#email", email);
  await page.fill("#agent-name", "my-agent");
  await page.check("#terms");
  await page.click("#signup-button");
}

export async function signIn(page, key) {
  await page.goto(`${page.base}/metering/account`);
  await page.fill("#key", key);
  await page.click("#key-button");
  await page.waitForSelector("#balance");
}

export const call = (page, path, key) => fetch(page.base + path, { headers: { authorization: `Bearer ${key}` } });

/**
 * Both schemes at the width of a phone and of a desktop. Axe takes most of the time of these scenes, so it runs once for
 * each scheme, which decides contrasts, and once for each width, which decides what is shown.
 */
export const LOOKS = [375, 1280].flatMap((width) =>
  ["light", "dark"].map((colorScheme) => ({ viewport: { width, height: 812 }, colorScheme, axe: (width === 375) === (colorScheme === "dark") })),
);
export const look = ({ viewport, colorScheme }) => `${viewport.width}-${colorScheme}`;

/** Pages that can import our modules one by one, as `/modules/NAME.js`. The server has joined them. */
const served = new WeakSet();
export async function serveModules(page) {
  if (served.has(page)) return;
  served.add(page);
  await page.route("**/modules/*.js", (route) => {
    const file = new URL(`../../metering-server/assets/pages/scripts/${route.request().url().split("/").at(-1)}`, import.meta.url);
    return route.fulfill({ contentType: "text/javascript", body: readFileSync(file, "utf8").replaceAll('"/assets/', '"/modules/') });
  });
}

/** Calls an export of one of our modules in the page. */
export async function inModule(page, name, work, argument) {
  await serveModules(page);
  return page.evaluate(`(async () => (${work})(await import("/modules/${name}.js"), ${JSON.stringify(argument)}))()`);
}

/** Remembers what the page puts into the clipboard. */
export const watchClipboard = (page) =>
  page.addInitScript(() => {
    Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => (globalThis.__copied = text) } });
    addEventListener("copy", (event) => (globalThis.__copied = event.clipboardData.getData("text/plain")));
  });
/** The last text that the page put there. */
export const copied = (page) => page.evaluate(() => globalThis.__copied);

/** The user returns to the page after a time, in milliseconds. */
export const comeBack = (page, later) =>
  page.evaluate((later) => {
    const now = performance.now();
    performance.now = () => now + later;
    dispatchEvent(new Event("focus"));
  }, later);

/** Chooses an entry of a row's menu. A list that is drawn anew during the press loses it: then it is pressed again. */
export async function choose(row, action) {
  for (let tries = 1; ; tries += 1) {
    await row.locator(".menu-button").click();
    try {
      return await row.locator(`[data-action=${action}]`).click({ timeout: 10_000 });
    } catch (error) {
      if (tries === 10) throw error;
    }
  }
}

/** Presses Tab until the focus is on `selector`. */
export async function tabTo(page, selector) {
  for (let presses = 0; presses < 80; presses += 1) {
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`the keyboard does not reach ${selector}`);
}
