// Steps of the scenes of the Keys tab.

import assert from "node:assert/strict";
import { shows } from "./browser.mjs";
import { KEY, call, choose } from "./steps.mjs";

export const ROUTE = "/mpp/ethPrice";
export const OTHER_ROUTE = "/mpp/snapshot/allTrades";
/** A budget for one call of weight 1, which costs 0.0006944444 credits, and not for two. */
export const ONE_CALL = "0.001";

/** Sends a request about keys, past the page. */
export async function api(page, key, method, path, body) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(page.base + path, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(response.ok, `${method} ${path}: ${response.status}`);
  return response.json();
}

export const make = (page, key, body) => api(page, key, "POST", "/keys", body);
export const status = async (page, key, path = ROUTE) => (await call(page, path, key)).status;
export const row = (page, name) => page.locator("#keys tbody tr", { has: page.locator("[data-key]").getByText(name, { exact: true }) });
export const menu = (page, name) => row(page, name).locator(".menu-button");

/** Chooses an entry of a key's menu. */
export const act = (page, name, action) => choose(row(page, name), action);

/** The text of a key's panel, which is then closed. */
export async function details(page, name) {
  await row(page, name).locator("[data-key]").click();
  const text = await page.innerText("dialog.side-panel");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  return text;
}

export async function openKeys(page) {
  await page.click("#tab-keys");
  await page.waitForSelector("#keys table");
}

/** Loads the tab again. */
export async function again(page) {
  const loaded = page.waitForResponse((response) => response.url().includes("/keys?"));
  await page.click("#refresh");
  await loaded;
  await page.waitForFunction(() => !document.querySelector("#refresh").hasAttribute("aria-busy"));
}

/** Sends the open dialog, and waits until it is closed and the keys are loaded. */
export async function submit(page) {
  const loaded = page.waitForResponse((response) => response.url().includes("/keys?"));
  await page.click("dialog [type=submit]");
  await loaded;
  await page.waitForSelector("dialog", { state: "detached" });
}

/** The secret in the dialog, which is then closed. Only this tab's own secret is on the page after that. */
export async function secretOf(page, name, { isOwn = false } = {}) {
  await page.waitForSelector("#secret-kept");
  const secret = (await page.innerText("dialog #api-key")).match(KEY)[0];
  await page.keyboard.press("Escape");
  assert.ok(await page.isVisible("#secret-kept"), "Escape does not lose the secret");
  const loaded = page.waitForResponse((response) => response.url().includes("/keys?"));
  await page.click("#secret-kept");
  await loaded;
  await row(page, name).waitFor();
  assert.ok(isOwn || !(await shows(page, secret)), "the secret is shown once");
  return secret;
}

/** In the page: what the menu's buttons of these rows cover. */
export const covered = (rows) =>
  rows.flatMap((row) => {
    const button = row.querySelector(".menu-button").getBoundingClientRect();
    const isCovered = (part) => [...part.getClientRects()].some((at) => at.left < button.right && at.right > button.left && at.top < button.bottom && at.bottom > button.top);
    return [...row.querySelectorAll("[data-key], code, .key-state, .key-budget, time")].filter(isCovered).map((part) => part.textContent);
  });

/** In the page: whether both buttons of a dialog can be seen whole. */
export function hasButtonsInView(dialog) {
  const [frame, buttons] = [dialog.getBoundingClientRect(), [...dialog.querySelectorAll(".actions > .button")]];
  const isInView = (at) => at.top >= frame.top && at.bottom <= Math.min(frame.bottom, innerHeight);
  return buttons.length === 2 && buttons.every((button) => isInView(button.getBoundingClientRect()));
}
