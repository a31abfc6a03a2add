// Steps that many scenes share.

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
