// The bot challenge, whichever is configured: ALTCHA's widget, Cloudflare's, or none.

import { h, wait } from "/assets/dom.js";

const { challenge: kind, siteKey } = document.body.dataset;
/** How long Cloudflare's script may take to come. */
const SCRIPT_PATIENCE_MS = 15_000;

/** Puts the challenge into its place. The result has `token()`, which waits for the solution, and `renew()`. */
export async function mountChallenge(place) {
  const error = h("p", { class: "field-error", role: "alert", hidden: true });
  try {
    if (kind === "altcha") return await mountAltcha(place, error);
    if (kind === "turnstile") return await mountTurnstile(place, error);
  } catch (failure) {
    place.replaceChildren(error);
    error.textContent = failure.message;
    error.hidden = false;
    return { token: () => Promise.reject(failure), renew() {} };
  }
  place.remove();
  return { token: async () => undefined, renew() {} };
}

async function mountAltcha(place, error) {
  if (!globalThis.isSecureContext) {
    throw new Error("The proof that you are no robot needs a secure connection: open this page by https, or on this machine itself.");
  }
  await import("/assets/altcha.min.js");
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
      if (!payload && widget.getState() !== "verifying") await widget.verify();
      while (!payload && widget.getState() === "verifying") await wait(100);
      if (!payload) throw new Error("The challenge could not be solved. Try again.");
      return payload;
    },
    renew() {
      payload = undefined;
      widget.reset();
    },
  };
}

async function mountTurnstile(place, error) {
  const deadline = Date.now() + SCRIPT_PATIENCE_MS;
  while (!globalThis.turnstile && Date.now() < deadline) await wait(100);
  if (!globalThis.turnstile) throw new Error("The bot challenge cannot be loaded. Allow this page to load it, and reload.");
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
