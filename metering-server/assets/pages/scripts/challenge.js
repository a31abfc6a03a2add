// The bot challenge, whichever is configured: ALTCHA's widget, Cloudflare's, or none.

import { h, wait } from "/assets/dom.js";

const { challenge: kind, siteKey } = document.body.dataset;
/** How long Cloudflare's script may take to come. */
const SCRIPT_PATIENCE_MS = 15_000;

/** ALTCHA's states in which it does no more by itself. */
const SETTLED = ["verified", "error", "expired"];
/** How often ALTCHA's script was asked for. */
let loads = 0;

/** Why a challenge is not there; `again` says whether another try may help. */
class Missing extends Error {
  constructor(message, { again = false } = {}) {
    super(message);
    this.again = again;
  }
}

/** Puts the challenge into its place. The result has `token()`, which waits for the solution, and `renew()`. */
export function mountChallenge(place) {
  let mounted;
  const mountIt = () => {
    mounted = mount(place);
    mounted.catch((failure) => explain(place, failure, mountIt));
  };
  mountIt();
  return {
    async token() {
      let widget;
      try {
        widget = await mounted;
      } catch {
        // Why, stands in its place.
        throw new Error("This needs the bot challenge above.");
      }
      return widget.token();
    },
    renew: () => mounted.then((widget) => widget.renew(), () => {}),
  };
}

async function mount(place) {
  const error = h("p", { class: "field-error", role: "alert", hidden: true });
  if (kind === "altcha") return mountAltcha(place, error);
  if (kind === "turnstile") return mountTurnstile(place, error);
  place.remove();
  return { token: async () => undefined, renew() {} };
}

function explain(place, { message, again }, retry) {
  const button = again && h("button", { class: "button button-quiet button-small", type: "button", on: { click: retry } }, "Try again");
  place.replaceChildren(h("div", { class: "notice notice-bad", role: "alert" }, h("p", {}, message), button && h("div", { class: "actions" }, button)));
}

async function mountAltcha(place, error) {
  if (!globalThis.isSecureContext) {
    throw new Missing("The proof that you are no robot needs a secure connection: open this page by https, or on this machine itself.");
  }
  await load();
  for (const hash of ["SHA-256", "SHA-384", "SHA-512"]) {
    globalThis.$altcha.algorithms.set(`PBKDF2/${hash}`, () => new Worker("/assets/altcha-pbkdf2.js"));
  }
  const widget = h("altcha-widget", {
    configuration: JSON.stringify({
      challenge: "/signup/challenge",
      // It would watch the pointer and send what it saw.
      humanInteractionSignature: false,
      hideFooter: true,
      // The whole form waits for it, so it is no use to wait for a click.
      auto: "onfocus",
    }),
  });
  let payload;
  widget.addEventListener("statechange", ({ detail }) => {
    payload = detail.state === "verified" ? detail.payload : undefined;
  });
  place.replaceChildren(widget, error);
  return {
    async token() {
      if (payload) return payload;
      const settled = settling(widget);
      // It says so only later: until then it has the state of the last time.
      if (widget.getState() !== "verifying") widget.verify();
      await settled;
      if (!payload) throw new Error("The challenge could not be solved. Try again.");
      return payload;
    },
    renew() {
      payload = undefined;
      widget.reset();
    },
  };
}

/** ALTCHA's script. Browsers remember that a module failed, by its address with the part that is not sent. */
async function load() {
  loads += 1;
  const script = "/assets/altcha.min.js";
  try {
    await import(loads === 1 ? script : `${script}#${loads}`);
  } catch {
    throw new Missing("The bot challenge could not be loaded.", { again: true });
  }
}

/** The next time that ALTCHA is done, well or not. */
function settling(widget) {
  return new Promise((resolve) => {
    const look = ({ detail }) => {
      if (!SETTLED.includes(detail.state)) return;
      widget.removeEventListener("statechange", look);
      resolve();
    };
    widget.addEventListener("statechange", look);
  });
}

async function mountTurnstile(place, error) {
  const deadline = Date.now() + SCRIPT_PATIENCE_MS;
  while (!globalThis.turnstile && Date.now() < deadline) await wait(100);
  if (!globalThis.turnstile) throw new Missing("The bot challenge cannot be loaded. Allow this page to load it, and reload.");
  const box = h("div");
  place.replaceChildren(box, error);
  let token;
  const settle = (value) => {
    token = value;
    error.hidden = true;
  };
  const widget = globalThis.turnstile.render(box, {
    sitekey: siteKey,
    callback: settle,
    "expired-callback": () => settle(undefined),
    "error-callback": () => {
      token = undefined;
      error.textContent = "The bot challenge failed. Try again.";
      error.hidden = false;
      return true;
    },
  });
  return {
    async token() {
      const patience = Date.now() + 60_000;
      while (!token && Date.now() < patience) await wait(100);
      if (!token) throw new Error("Solve the bot challenge first.");
      return token;
    },
    renew() {
      token = undefined;
      globalThis.turnstile.reset(widget);
    },
  };
}
