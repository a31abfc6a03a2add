// Scenes on the API reference: prices, code to copy, and requests with the key of the tab.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { checkPage, shows } from "./browser.mjs";
import { LOOKS, call, serveModules, signIn } from "./steps.mjs";

const BLOCK = "#get_mpp_eth_price_by_block_number";
/** A route that declares its body, and one that does not. */
const DECLARED = "#post_api_echo";
const ANY = "#post_api_echo_by_word";
/** One whose body has an example. */
const WRITTEN = "#post_api_letter";
const STREAM = "#get_mpp_stream_all_trades";
const SERIES = "#get_mpp_time_series_by_token_address_pool_address_time_interval_step_seconds";

async function openReference(page) {
  await page.goto(`${page.base}/docs`);
  await page.waitForSelector(".operation");
}

async function open(page, id) {
  const collapsed = page.locator(`.endpoints-more:not([open]):has(${id}) > summary`);
  if ((await collapsed.count()) > 0) await collapsed.click();
  await page.click(`${id} > summary`);
  await page.waitForSelector(`${id} .operation-body`);
}

/** Also of an endpoint in a closed group. */
const price = (page, id) => page.locator(`${id} > summary .price`).textContent();
const fact = (page, id, name) => page.locator(`${id} [data-fact=${name}]`).innerText();
const code = (page, id) => page.locator(`${id} [role=tabpanel]`).innerText();

/** The balance, to its last digit. */
async function balance(page, key) {
  const text = await (await call(page, "/credits/balance", key)).text();
  return /"credit_balance":([\d.-]+)/.exec(text)[1];
}

/** Exact decimals of up to ten places. */
const units = (text) => {
  const [whole, fraction = ""] = text.split(".");
  return BigInt(whole + fraction.padEnd(10, "0"));
};

/** The account was charged this price since it had that balance. Balances are rounded, so it may seem to be off by one. */
async function assertCharged(page, key, before, price) {
  const charged = units(before) - units(await balance(page, key));
  const off = charged - units(price);
  assert.ok(off >= -1n && off <= 1n, `${charged} instead of ${price}`);
}

export const reference = {
  /** A visitor without a key reads prices and code. */
  async reference(visitor) {
    const page = await visitor.window();
    await openReference(page);
    assert.match(await page.title(), /^API reference · Acme Data$/);
    const rows = await page.locator(".operation > summary").allTextContents();
    assert.ok(rows.every((row) => /\bcredits?\b|Free/.test(row)), rows.join("\n"));
    assert.equal(await price(page, "#get_mpp_eth_price"), "0.0006944 credits");
    assert.equal(await price(page, STREAM), "0.01 credits per connection");
    assert.equal(await price(page, SERIES), "from 0.0006944 credits");
    assert.equal(await price(page, "#balance"), "Free");
    const headings = await page.locator(".group > h2").allInnerTexts();
    assert.deepEqual(headings.slice(0, 6), ["Pools and tokens", "Prices", "Snapshots", "Trades", "Volume and activity", "Account"]);
    for (const hidden of ["/internal/", "/metrics", "/ready"]) assert.ok(!rows.some((row) => row.includes(hidden)), hidden);
    await checkPage(page, "reference", { top: "header" });

    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "filter", "a key leads to the search");
    await page.fill("#filter", "ethprice");
    assert.equal(await page.locator(".operation:visible").count(), 2);
    assert.match(await page.textContent("#docs-status"), /2 endpoints$/);
    await page.fill("#filter", "");

    // The service's own endpoints are collapsed, except for what a search or a link leads to.
    assert.ok(await page.isHidden("#balance"));
    await page.fill("#filter", "/credits/balance");
    assert.ok(await page.isVisible("#balance"));
    await page.fill("#filter", "");
    assert.ok(await page.isHidden("#balance"));

    await open(page, BLOCK);
    assert.ok(page.url().endsWith(BLOCK));
    assert.match(await page.locator(`${BLOCK} .price-facts`).innerText(), /^0\.0013888889 credits per request\. A credit buys 720 requests\.$/);
    assert.equal(await page.inputValue(`${BLOCK} input`), "19000001");
    assert.match(await page.locator(`${BLOCK} .operation-facts`).innerText(), /Responses with status 429 or 5xx cost nothing\./);
    assert.match(await page.locator(`${BLOCK} .example`).innerText(), /"price_usd": "\d/);
    assert.equal(await page.locator(`${BLOCK} [data-action=send]`).count(), 0, "without a key nothing can be sent");
    assert.equal(await page.getAttribute(`${BLOCK} [data-needs=key] a`, "href"), "/metering/account");
    assert.equal(await page.locator(`${BLOCK} .operation-facts a[href="/docs/guides/idempotency"]`).count(), 1);
    await open(page, SERIES);
    assert.match(await page.locator(`${SERIES} .price-table`).innerText(), /up to 1,800\s+0\.0013888889[\s\S]*above 604,800\s+1\.4222222222/);
    await open(page, "#quote");
    assert.match(await code(page, "#quote"), /-X POST[\s\S]*"agent_name"/);

    // The free one can be sent without a key.
    await open(page, "#plans");
    await page.click("#plans [data-action=send]");
    await page.waitForSelector("#plans .response-body");
    assert.equal(await page.locator("#plans [data-fact=cost]").count(), 0);

    // A link opens its operation.
    const linked = await visitor.window();
    await linked.goto(`${linked.base}/docs${STREAM}`);
    await linked.waitForSelector(`${STREAM}[open] .operation-body`);
    await linked.evaluate(() => (location.hash = "#balance"));
    await linked.waitForSelector("#balance[open] .operation-body");
    assert.ok(await linked.isVisible("#balance > summary"));
  },

  /** Documents and streams that the sample feed does not have. */
  async unusual(visitor) {
    const page = await visitor.window();
    await openReference(page);
    await serveModules(page);
    const seen = await page.evaluate(async () => {
      const [{ groupsOf }, { isFree, priceInFull }, { readEvents }] = await Promise.all(["groups", "price", "events"].map((name) => import(`/modules/${name}.js`)));
      const metered = (group) => ({ tags: ["metered"], "x-group": group });
      const own = { tags: ["child_accounts"] };
      const paths = { "/a": { get: metered("価格"), head: metered("価格") }, "/b": { get: metered("取引") }, "/c": { get: own, head: own } };
      const groups = groupsOf({ tags: [{ name: "child_accounts" }], "x-groups": ["価格", "取引"], paths });
      const tiered = (...prices) => ({ credits: prices[0], tiers: prices.slice(0, -1).map((credits) => ({ credits })), beyond: { credits: prices.at(-1) } });
      const guide = (price) => priceInFull({ "x-price": price }).querySelector("a")?.getAttribute("href");
      const byUsage = { credits: "1", min: { credits: "0" }, units: { input_tokens: "0.0000025" } };
      const events = [];
      await readEvents(new Response(`data: a\u2028b\n\ndata: ${"x".repeat(300_000)}\ndata: more\n\ndata: last\n\n`), ({ data }) => events.push(data));
      return {
        ids: new Set(groups.map(({ id }) => id)).size,
        titles: groups.map(({ title }) => title),
        methods: groups.map(({ operations }) => operations.map(({ method }) => method).join(" ")),
        free: [undefined, { credits: "0" }, tiered("0", "0", "0"), tiered("0", "1", "2"), tiered("0", "0", "2"), { credits: "1" }].map(isFree),
        guides: [byUsage, { credits: "0", volume: [{ up_to: 2, credits: "0" }, { credits: "1" }] }].map(guide),
        events: [events[0], events[1].length, events[2]],
      };
    });
    assert.deepEqual(seen, { ids: 3, titles: ["価格", "取引", "Child accounts"], methods: ["get head", "get", "get"], free: [true, true, true, false, false, false], guides: ["/docs/guides/tokens", "/docs/guides/tokens#free-allowances-and-volume-prices"], events: ["a\u2028b", 100_000, "last"] });
  },

  /** The code is copied, and runs: with curl, Node.js, and Python if there is one with httpx. */
  async samples(visitor, { key, python }) {
    const page = await visitor.window();
    await page.addInitScript(() => {
      globalThis.__copied = [];
      navigator.clipboard.writeText = async (text) => globalThis.__copied.push(text);
    });
    await openReference(page);
    await open(page, BLOCK);
    await page.fill(`${BLOCK} input`, "19000007");
    const runs = { curl: ["bash", ["-c"]], typescript: ["node", ["--input-type=module", "-e"]], ...(python ? { python: [python, ["-c"]] } : {}) };
    for (const language of ["curl", "python", "typescript"]) {
      await page.click(`${BLOCK} [data-language=${language}]`);
      await page.click(`${BLOCK} .code-tabs button:has-text("Copy")`);
      await page.waitForSelector(`${BLOCK} .code-tabs button:has-text("Copied")`);
      const copied = (await page.evaluate(() => globalThis.__copied)).at(-1);
      assert.equal(copied.trim(), (await code(page, BLOCK)).trim());
      assert.ok(copied.includes("/mpp/ethPrice/19000007") && copied.includes("API_KEY") && !copied.includes("sk_live"), copied);
      const [program, args] = runs[language] ?? [];
      if (!program) continue;
      const before = await balance(page, key);
      const printed = execFileSync(program, [...args, copied], { env: { ...process.env, API_KEY: key }, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
      assert.match(printed, /19000007/, language);
      await assertCharged(page, key, before, "0.0013888889");
    }
    await page.waitForSelector(`${BLOCK} .code-tabs button:has-text("Copy")`);
    // Other operations show the language that was chosen last.
    await open(page, STREAM);
    assert.match(await code(page, STREAM), /TextDecoderStream/);
    await page.click(`${STREAM} [data-language=curl]`);
    assert.match(await code(page, BLOCK), /^curl /);
    assert.match(await code(page, STREAM), /^curl -N /);
  },

  /** A request with the key of the tab costs the route's price, and shows it. */
  async tryIt(visitor, { key }) {
    const page = await visitor.window({ expected: [404, 402] });
    await signIn(page, key);
    await openReference(page);
    assert.ok(!(await shows(page, key)), "the key is not in the page");
    await open(page, BLOCK);
    const before = await balance(page, key);
    await page.click(`${BLOCK} [data-action=send]`);
    await page.waitForSelector(`${BLOCK} .response-body`);
    assert.equal(await fact(page, BLOCK, "status"), "200 OK");
    assert.equal(await fact(page, BLOCK, "cost"), "0.0013888889");
    await assertCharged(page, key, before, "0.0013888889");
    let left = await balance(page, key);
    assert.equal(await fact(page, BLOCK, "balance"), left);
    assert.match(await page.locator(`${BLOCK} .response-body`).innerText(), /^\{\n {2}"sample": true,[\s\S]*"block_number": 19000001/);
    await checkPage(page, "reference-try", { top: BLOCK });

    // A price that depends on a parameter is that of its value.
    await open(page, SERIES);
    const cost = () => page.locator(`${SERIES} [data-cost]`).innerText();
    const interval = `${SERIES} input[id$=time_interval]`;
    assert.match(await cost(), /: 0\.002778 credits$/);
    for (const [seconds, text] of [["600", ": 0.0006944 credits"], ["700000", ": 1.422 credits"], ["", "from 0.0006944 credits"]]) {
      await page.fill(interval, seconds);
      assert.ok((await cost()).endsWith(text), `${seconds}: ${await cost()}`);
    }
    await page.fill(interval, "601");
    await page.click(`${SERIES} [data-action=send]`);
    await page.waitForSelector(`${SERIES} .response-body`);
    assert.equal(await fact(page, SERIES, "cost"), "0.0013888889");
    left = await balance(page, key);

    // A missing value costs nothing; a refusal of the upstream is shown, and charged.
    await page.fill(`${BLOCK} input`, "");
    await page.click(`${BLOCK} [data-action=send]`);
    assert.equal(await page.locator(`${BLOCK} .field-error:visible`).innerText(), "Enter a value.");
    assert.equal(await balance(page, key), left);
    await page.fill(`${BLOCK} input`, "99999999999");
    await page.click(`${BLOCK} [data-action=send]`);
    await page.waitForFunction((id) => document.querySelector(`${id} [data-fact=status]`)?.textContent.startsWith("404"), BLOCK);
    assert.equal(await fact(page, BLOCK, "cost"), "0.0013888889");
    await checkPage(page);

    // Signed out in the meantime: nothing is sent.
    await page.evaluate(() => sessionStorage.clear());
    await page.click(`${BLOCK} [data-action=send]`);
    await page.waitForSelector(`${BLOCK} .try-result [data-needs=key]`);
  },

  /** A body that the catalogue declares is prefilled from its schema, checked, sent, and in the code. */
  async tryBody(visitor, { key }) {
    const page = await visitor.window({ expected: [400] });
    await signIn(page, key);
    await openReference(page);
    await open(page, DECLARED);
    const field = `${DECLARED} .body-field textarea`;
    const prefilled = { model: "small", messages: [{ role: "user", content: "Hello" }], max_tokens: 16 };
    // As the catalogue's author wrote the example and the schema, whose members are not in alphabetical order.
    await open(page, WRITTEN);
    assert.equal(await page.inputValue(`${WRITTEN} .body-field textarea`), JSON.stringify({ to: "Ada", count: 2, body: "Hi" }, null, 2));
    assert.match(await page.locator(`${WRITTEN} .operation-facts .schema`).innerText(), /^to[\s\S]*count[\s\S]*body/);
    assert.deepEqual(JSON.parse(await page.inputValue(field)), prefilled);
    assert.match(await page.locator(`${DECLARED} .operation-facts`).innerText(), /application\/json\s[\s\S]*messages[\s\S]*model\s*"small" \| "large"[\s\S]*stream\s*boolean, optional/);
    assert.match(await code(page, DECLARED), /-X POST[\s\S]*-H 'Content-Type: application\/json'[\s\S]*-d '\{\n {2}"model": "small"/);
    await checkPage(page, "reference-body", { top: DECLARED });

    // An invalid body is not sent and costs nothing, and the page shows the reason.
    const before = await balance(page, key);
    for (const [text, problem] of [["", /^Enter the body\.$/], ['{"model": ', /^This is not JSON: /]]) {
      await page.fill(field, text);
      await page.click(`${DECLARED} [data-action=send]`);
      assert.match(await page.locator(`${DECLARED} .field-error:visible`).innerText(), problem);
      assert.equal(await page.evaluate(() => document.activeElement.tagName), "TEXTAREA");
      await checkPage(page);
    }
    await page.fill(field, JSON.stringify({ ...prefilled, max_tokens: 1 }));
    assert.equal(await page.locator(`${DECLARED} .field-error:visible`).count(), 0);
    await page.click(`${DECLARED} [data-action=send]`);
    await page.waitForFunction((id) => document.querySelector(`${id} [data-fact=status]`)?.textContent.startsWith("400"), DECLARED);
    assert.match(await page.locator(`${DECLARED} .response-body`).innerText(), /\/max_tokens/, "the pointer of what is wrong");
    assert.equal(await balance(page, key), before);

    // The body that is in the field is sent, and is that of the code.
    const said = { ...prefilled, messages: [{ role: "user", content: "It's \"here\"\n$HOME `x`" }] };
    await page.fill(field, JSON.stringify(said, null, 2));
    await page.click(`${DECLARED} [data-action=send]`);
    await page.waitForFunction((id) => document.querySelector(`${id} [data-fact=status]`)?.textContent.startsWith("200"), DECLARED);
    assert.equal(await fact(page, DECLARED, "cost"), "0.01");
    assert.deepEqual(JSON.parse(await page.locator(`${DECLARED} .response-body`).innerText()), said);
    for (const [language, ...program] of [["curl", "bash", "-c"], ["typescript", "node", "--input-type=module", "-e"]]) {
      await page.click(`${DECLARED} [data-language=${language}]`);
      const [name, ...args] = program;
      const printed = execFileSync(name, [...args, await code(page, DECLARED)], { env: { ...process.env, API_KEY: key }, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
      assert.match(printed, /\$HOME `x`/, language);
    }

    // Without a declaration, a body is optional.
    await open(page, ANY);
    assert.equal(await page.inputValue(`${ANY} .body-field textarea`), "");
    await page.fill(`${ANY} .parameter input`, "word");
    await page.click(`${ANY} [data-action=send]`);
    await page.waitForFunction((id) => document.querySelector(`${id} [data-fact=status]`)?.textContent.startsWith("200"), ANY);
    await page.fill(`${ANY} .body-field textarea`, "[1, 2]");
    await page.click(`${ANY} [data-action=send]`);
    await page.waitForSelector(`${ANY} .response-body`);
    assert.deepEqual(JSON.parse(await page.locator(`${ANY} .response-body`).innerText()), [1, 2]);

    for (const options of LOOKS) {
      const other = await visitor.window(options);
      await signIn(other, key);
      await openReference(other);
      for (const id of [DECLARED, ANY]) await open(other, id);
      await checkPage(other, `reference-body-${options.colorScheme}-${options.viewport.width}`, { top: DECLARED });
    }
  },

  /** Events are shown as they arrive, until the visitor stops the stream. */
  async tryStream(visitor, { key }) {
    const page = await visitor.window();
    await signIn(page, key);
    await openReference(page);
    await open(page, STREAM);
    const before = await balance(page, key);
    await page.click(`${STREAM} [data-action=send]`);
    await page.waitForFunction((id) => Number(document.querySelector(`${id} [data-count]`)?.dataset.count) >= 3, STREAM);
    assert.equal(await fact(page, STREAM, "cost"), "0.01");
    assert.match(await page.locator(`${STREAM} .events > li`).first().innerText(), /"block_number": \d+/);
    await checkPage(page, "reference-stream", { top: STREAM });
    await page.focus(`${STREAM} [data-action=stop]`);
    await page.keyboard.press("Enter");
    await page.waitForSelector(`${STREAM} [data-ended=stopped]`);
    const seen = await page.locator(`${STREAM} [data-count]`).getAttribute("data-count");
    await page.waitForTimeout(700);
    assert.equal(await page.locator(`${STREAM} [data-count]`).getAttribute("data-count"), seen, "no event arrives after stopping");
    await assertCharged(page, key, before, "0.01");
    assert.equal(await page.evaluate(() => document.activeElement.dataset.action), "send");
    assert.ok(await page.isHidden(`${STREAM} [data-action=stop]`));
  },

  /** With the keyboard alone: open, choose a language, change a value, send. */
  async keyboard(visitor, { key }) {
    const page = await visitor.window();
    await signIn(page, key);
    await openReference(page);
    const focused = () => page.evaluate(() => [document.activeElement.closest(".operation")?.id, document.activeElement.dataset.action ?? document.activeElement.dataset.language ?? document.activeElement.tagName]);
    const tabTo = async (wanted) => {
      for (let presses = 0; presses < 60; presses += 1) {
        await page.keyboard.press("Tab");
        const [id, what] = await focused();
        if (`#${id}` === BLOCK && what === wanted) return;
      }
      assert.fail(`${wanted} cannot be reached with Tab`);
    };
    await page.focus("#filter");
    await tabTo("SUMMARY");
    await page.keyboard.press("Enter");
    await page.waitForSelector(`${BLOCK} .operation-body`);
    await tabTo("INPUT");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("19000003");
    await tabTo("curl");
    await page.keyboard.press("ArrowRight");
    assert.match(await code(page, BLOCK), /import httpx[\s\S]*19000003/);
    await page.keyboard.press("End");
    assert.deepEqual(await focused(), [BLOCK.slice(1), "typescript"]);
    await tabTo("send");
    await page.keyboard.press("Enter");
    await page.waitForSelector(`${BLOCK} .response-body`);
    assert.match(await page.locator(`${BLOCK} .response-body`).innerText(), /19000003/);
    await page.waitForFunction((id) => /Charged 0\.0013888889 credits/.test(document.querySelector(`${id} [role=status]`).textContent), BLOCK);
    assert.deepEqual(await focused(), [BLOCK.slice(1), "send"], "the focus stays");
  },

  /** Both schemes, on a phone and a desktop, with one of each kind of operation open. */
  async referenceLooks(visitor, { key }) {
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [375, 1280]) {
        const page = await visitor.window({ colorScheme, viewport: { width, height: 900 } });
        await signIn(page, key);
        await openReference(page);
        for (const id of [SERIES, STREAM, "#get_mpp_daily_active_pools", "#quote", "#usage_summary"]) await open(page, id);
        await page.click("#get_mpp_daily_active_pools [data-action=send]");
        await page.waitForSelector("#get_mpp_daily_active_pools .response-body");
        await page.locator("#errors summary").click();
        for (const summary of await page.locator(".operation[open] .refusals > summary").all()) await summary.click();
        await checkPage(page, `reference-${colorScheme}-${width}`, { top: SERIES });
      }
    }
  },

  /** The metered routes have another origin than the pages, which may call them. */
  async otherOrigin(visitor, { key, api }) {
    const page = await visitor.window();
    await signIn(page, key);
    await openReference(page);
    assert.equal(await page.locator("#base-url code").innerText(), api);
    await open(page, BLOCK);
    assert.ok((await code(page, BLOCK)).includes(`${api}/mpp/ethPrice/19000001`));
    await page.click(`${BLOCK} [data-action=send]`);
    await page.waitForSelector(`${BLOCK} .response-body`);
    assert.equal(await fact(page, BLOCK, "cost"), "0.0013888889");
    await open(page, "#balance");
    await page.click("#balance [data-action=send]");
    await page.waitForSelector("#balance .response-body");
    await checkPage(page);
  },
};
