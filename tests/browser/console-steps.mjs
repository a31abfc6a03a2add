// Steps that scenes of the operators' console share.

import assert from "node:assert/strict";

export const TOKEN = /opr_[0-9A-Za-z]{43}/;

/** Opens the console at a view, and signs in. */
export async function enter(page, token, view = "overview") {
  await page.goto(`${page.base}/console#/${view}`);
  await page.waitForSelector("#sign-in:not([hidden])");
  await page.fill("#token", token);
  await page.click("#token-button");
  await shown(page);
}

/** Waits until a view is shown completely. */
export const shown = (page) => page.waitForSelector("#view:not([hidden], [aria-busy]) #view-title");

/** Opens a view by its link. */
export async function visit(page, name, title = name) {
  await page.click(`#console-nav >> text="${name}"`);
  await page.waitForFunction((wanted) => document.querySelector("#view-title")?.textContent === wanted, title);
  await shown(page);
}

/** Fills the open dialog, sends it, and waits until it is closed. */
export async function send(page, values) {
  for (const [name, value] of Object.entries(values)) {
    const field = page.locator(`dialog #field-${name}`);
    if ((await field.evaluate((element) => element.tagName)) === "SELECT") await field.selectOption(value);
    else await field.fill(value);
  }
  await page.click("dialog [type=submit]");
  try {
    await page.waitForSelector("dialog:has(form)", { state: "detached" });
  } catch {
    assert.fail(`the dialog is still open: ${await page.locator("dialog [role=alert]:visible").allInnerTexts()}`);
  }
}

/** Waits for the console's message after an action. */
export async function says(page, words) {
  await page.waitForSelector("#message");
  assert.equal(await page.innerText("#message"), words);
}

/** The secret that is shown once, which is then closed. */
export async function secretOnce(page, pattern) {
  await page.waitForSelector("#secret-kept");
  const [secret] = (await page.innerText("dialog")).match(pattern);
  await page.keyboard.press("Escape");
  assert.ok(await page.isVisible("#secret-kept"), "Escape does not lose the secret");
  await page.click("#secret-kept");
  await page.waitForSelector("dialog", { state: "detached" });
  return secret;
}

/** The newest entry of the audit log that is shown: action, reason, result. */
export async function newestEntry(page) {
  const entry = page.locator(".log > li").first();
  const [action, reason, result] = [await entry.getAttribute("data-action"), await entry.locator(".log-reason").innerText(), await entry.locator(".log-head .tag").innerText()];
  return { action, reason, result };
}
