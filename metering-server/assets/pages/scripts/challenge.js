// The configured bot challenge: ALTCHA's widget, Cloudflare's, or none.

import { h, wait } from "/assets/dom.js";

const { challenge: kind, siteKey } = document.body.dataset;
/** How long to wait for Cloudflare's script. */
const SCRIPT_TIMEOUT_MS = 15_000;

/** The states in which ALTCHA has finished. */
const SETTLED = ["verified", "error", "expired"];
/** How many times ALTCHA's script has been requested. */
let loads = 0;

/** The challenge is not available; `again` says whether a retry may help. */
class Missing extends Error {
  constructor(message, { again = false } = {}) {
    super(message);
    this.again = again;
  }
}

/** Puts the challenge into `place`. The result has `token()`, which waits for the solution, and `renew()`. */
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
        // The reason is shown instead of the challenge.
        throw new Error("Solve the bot challenge above first.");
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
    throw new Missing("Checking that you're human needs a secure connection: open this page over https, or on the machine that runs the service.");
  }
  await load();
  for (const hash of ["SHA-256", "SHA-384", "SHA-512"]) {
    globalThis.$altcha.algorithms.set(`PBKDF2/${hash}`, () => new Worker("/assets/altcha-pbkdf2.js"));
  }
  const widget = h("altcha-widget", {
    configuration: JSON.stringify({
      challenge: "/signup/challenge",
      // This would track the pointer and send the data.
      humanInteractionSignature: false,
      hideFooter: true,
      // The form cannot be sent without it, so start before the user clicks.
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
      // The state changes asynchronously; until then, it is still the previous one.
      if (widget.getState() !== "verifying") widget.verify();
      await settled;
      if (!payload) throw new Error("The bot challenge could not be solved. Try again.");
      return payload;
    },
    renew() {
      payload = undefined;
      widget.reset();
    },
  };
}

/** Loads ALTCHA's script. Browsers cache a failed module by its URL, so each retry adds a new fragment. */
async function load() {
  loads += 1;
  const script = "/assets/altcha.min.js";
  try {
    await import(loads === 1 ? script : `${script}#${loads}`);
  } catch {
    throw new Missing("Could not load the bot challenge.", { again: true });
  }
}

/** Resolves when ALTCHA has finished, successfully or not. */
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
  const deadline = Date.now() + SCRIPT_TIMEOUT_MS;
  while (!globalThis.turnstile && Date.now() < deadline) await wait(100);
  if (!globalThis.turnstile) throw new Missing("Could not load the bot challenge. Allow this page to load it, then reload.");
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
      const tokenDeadline = Date.now() + 60_000;
      while (!token && Date.now() < tokenDeadline) await wait(100);
      if (!token) throw new Error("Solve the bot challenge first.");
      return token;
    },
    renew() {
      token = undefined;
      globalThis.turnstile.reset(widget);
    },
  };
}
