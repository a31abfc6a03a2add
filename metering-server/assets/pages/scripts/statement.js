// The page of one statement, to read, print and download. The download has the proofs.

import { fetchText, sentence } from "/assets/api.js";
import { credits } from "/assets/atoms.js";
import { amount, group, readExactly } from "/assets/decimal.js";
import { busy, byId, h } from "/assets/dom.js";
import { save } from "/assets/download.js";
import { rememberedKey } from "/assets/session.js";
import { table } from "/assets/table.js";

const period = new URLSearchParams(location.search).get("period") ?? new Date().toISOString().slice(0, 7);
/** How many lines the page shows. The download has all. */
const MOST = 5_000;

const COLUMNS = [{ name: "Time (UTC)", head: true }, { name: "What" }, { name: "Requests", number: true }, { name: "Credits", number: true }, { name: "Funds", number: true }];

const WORDS = { opening: "Funds when the log began", imported: "Earlier usage, imported", charged: "Charged", refunded: "Refunded", expired: "Charged when a hold expired", released: "Hold released" };

async function start() {
  const key = rememberedKey();
  if (!key) {
    say("This statement belongs to an account. Open the account in this tab, then come back.", h("a", { class: "button", href: "/metering/account" }, "Open account"));
    return;
  }
  const first = await read(key, null);
  const pages = [first];
  let lines = first.document.lines.length;
  for (let next = first.document.next; next !== null && lines < MOST; next = pages.at(-1).document.next) {
    pages.push(await read(key, next));
    lines += pages.at(-1).document.lines.length;
  }
  show(pages.map(({ document }) => document));
  byId("receipt-actions").hidden = false;
  byId("print").addEventListener("click", () => print());
  byId("download").addEventListener("click", ({ currentTarget }) => busy(currentTarget, () => download(key, pages)));
}

/** A page of the statement, as it was sent and as an object. */
async function read(key, after) {
  const { text } = await fetchText(`/statements/${encodeURIComponent(period)}${after === null ? "" : `?after=${after}`}`, { key });
  return { text, document: readExactly(text) };
}

/** Pages as documents on separate lines, as `metering statement verify` reads them. */
async function download(key, pages) {
  const status = byId("receipt-status");
  status.textContent = "";
  try {
    const texts = pages.map(({ text }) => `${text.trimEnd()}\n`);
    for (let next = pages.at(-1).document.next; next !== null; ) {
      const page = await read(key, next);
      texts.push(`${page.text.trimEnd()}\n`);
      next = page.document.next;
    }
    save(`statement-${period}.json`, texts, "application/json");
  } catch (error) {
    status.textContent = sentence(error);
  }
}

function say(text, action) {
  byId("receipt").replaceChildren(h("h1", {}, "Statement"), h("p", {}, text), h("p", {}, action));
}

function show(pages) {
  const [first, last] = [pages[0], pages.at(-1)];
  const lines = pages.flatMap((page) => page.lines);
  const fact = (name, ...value) => h("div", {}, h("dt", {}, name), h("dd", {}, ...value));
  const time = (text) => `${text.slice(0, 19).replace("T", " ")} UTC`;
  const funds = (state) => (state === null ? "not known: there are no lines" : `${group(credits(state.funds))} credits`);
  const [origin, size, root] = first.checkpoint.split("\n");
  document.title = `Statement ${period}`;
  const parts = [
    h("header", { class: "receipt-head" }, h("div", {}, h("h1", {}, `Statement ${period}`), h("p", { class: "mono" }, first.org_id))),
    !last.complete && h("p", { class: "notice", id: "incomplete" }, h("strong", {}, "Not complete yet. "), `It has the postings until ${time(last.until)}.`),
    first.gap && h("p", { class: "notice", id: "gap" }, h("strong", {}, "Not the whole period. "), lacks(first.gap, time)),
    h(
      "dl",
      { class: "facts" },
      fact("From", time(first.from)),
      fact("Until", time(last.until)),
      fact("Funds before", funds(first.opening)),
      fact("Funds after", last.next === null ? funds(last.closing) : "on the pages that follow"),
      last.held !== "0" && fact("Held now", `${group(credits(last.held))} credits`),
    ),
    lines.length > 0 ? table("Lines", COLUMNS, lines.map((line) => row(line, time))) : h("p", { class: "soft" }, "No postings."),
    last.next !== null && h("p", { class: "soft" }, `These are the first ${group(String(lines.length))} lines. The download has all of them.`),
    h("p", { class: "soft" }, `Funds are the balance plus held credits. The log ${origin} has each line, among ${group(size)} entries with the root `, h("span", { class: "mono break" }, root), ". ", h("code", {}, "metering statement verify"), " checks that with the download."),
  ];
  byId("receipt").replaceChildren(...parts.filter(Boolean));
}

/** What a statement lacks because its log began within the period. */
function lacks({ from, until, reason, previous }, time) {
  const why = reason === "moved" ? "moved to another database" : "restored from a backup";
  const log = previous === null ? "an earlier log" : `the log ${previous.origin}`;
  return `The service's records were ${why}, and a new log began at ${time(until)}. Postings from ${time(from)} until then are in ${log} or in none, and not in this statement. The first line has the funds as of then.`;
}

function row(line, time) {
  const what = WORDS[line.type] ?? line.type.replaceAll("_", " ");
  const detail = line.route ?? line.tx_hash;
  return [
    time(line.at).slice(0, 19),
    h("span", {}, what, detail && h("span", { class: "soft mono break" }, ` ${detail}`)),
    line.calls === undefined ? "" : group(line.calls),
    amount(credits(line.atoms), { sign: true }),
    amount(credits(line.funds)),
  ];
}

start().catch((error) => say(sentence(error), h("a", { class: "button button-quiet", href: "/metering/account" }, "Back to the account")));
