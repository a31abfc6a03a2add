// Shows the view that the fragment names. A view is a function that loads its data, and returns its parts:
// `{title, lead, actions, body}`.

import { sentence } from "/assets/api.js";
import { byId, h } from "/assets/dom.js";

let routes = [];
let shown = 0;
let active = false;

/** The views, as pairs of a pattern for the fragment and the view. The pattern's groups are the view's arguments. */
export function startRouter(views) {
  routes = views;
  addEventListener("hashchange", () => active && open());
  // Following this link would change the fragment.
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
}

/** Shows the view of the fragment, from now on whenever it changes. */
export function openView() {
  active = true;
  byId("view").hidden = false;
  return open();
}

/** Removes the view. Anything still loading for it is not shown. */
export function closeView() {
  active = false;
  shown += 1;
  document.querySelector("dialog")?.remove();
  byId("said").replaceChildren();
  byId("view").replaceChildren();
  byId("view").hidden = true;
}

async function open() {
  byId("said").replaceChildren();
  await draw(() => focusTitle());
}

/** Shows the view again, with new data. Announces `message`, and restores the focus. */
export async function reload(message = "") {
  const focus = document.activeElement?.id;
  await draw(() => (byId(focus) ?? byId("view-title"))?.focus({ preventScroll: true }));
  // Afterwards, so that screen readers do not cut it off.
  byId("said").replaceChildren(...(message ? [h("p", { class: "notice notice-good", id: "message" }, message)] : []));
}

async function draw(then) {
  const run = (shown += 1);
  const path = location.hash.slice(1) || "/overview";
  const [pattern, view] = routes.find(([pattern]) => pattern.test(path)) ?? [/()/, missing];
  const place = byId("view");
  const [status, late] = [byId("console-status"), () => run !== shown];
  mark(path);
  place.setAttribute("aria-busy", "true");
  status.textContent = "Loading …";
  let parts;
  try {
    parts = await view(...pattern.exec(path).slice(1).map((part) => part && decodeURIComponent(part)));
  } catch (error) {
    parts = { title: "Could not load this page", body: [failure(error)] };
  }
  if (late()) return;
  status.textContent = "";
  place.removeAttribute("aria-busy");
  document.title = `${parts.title} · ${document.body.dataset.brand}`;
  const title = h("h1", { id: "view-title", tabindex: "-1" }, parts.title);
  const head = h("div", {}, parts.back, title, parts.lead && h("p", { class: "soft lead" }, parts.lead));
  const actions = (parts.actions ?? []).filter(Boolean);
  place.replaceChildren(h("div", { class: "page-head" }, head, actions.length > 0 && h("div", { class: "actions" }, ...actions)), ...parts.body.filter(Boolean));
  parts.shown?.();
  then();
}

function focusTitle() {
  byId("view-title").focus({ preventScroll: true });
  scrollTo(0, 0);
}

function failure(error) {
  const again = h("button", { class: "button button-quiet button-small", type: "button", on: { click: () => openView() } }, "Try again");
  return h("div", { class: "notice notice-bad", role: "alert" }, h("p", {}, sentence(error)), h("div", { class: "actions" }, again));
}

function missing() {
  return { title: "No such page", body: [h("p", {}, h("a", { href: "#/overview" }, "Go to the overview"))] };
}

function mark(path) {
  for (const link of byId("console-nav").children) {
    const here = link.hash.slice(1);
    const [same, under] = [here === path, /^[/?]/.test(path.slice(here.length)) && path.startsWith(here)];
    if (same || under) {
      link.setAttribute("aria-current", same ? "page" : "true");
      // On a phone, the menu is one line that scrolls.
      link.parentElement.scrollLeft = link.offsetLeft - link.parentElement.offsetLeft - link.offsetWidth;
    } else {
      link.removeAttribute("aria-current");
    }
  }
}
