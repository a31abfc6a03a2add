// The field for the routes of a key: the catalogue's, to find and to check, and patterns such as /quotes/*.

import { callApi } from "/assets/api.js";
import { complain, h } from "/assets/dom.js";

/** Matches a route or a pattern, as opposed to a search text. */
const PATTERN = /^([A-Z]+ )?\/\S*$/;

/** The field, as of `field`. `value` lists the routes that are chosen; none means all. Its value has one in each line. */
export function routePicker({ name, label, value = [] }) {
  const id = `field-${name}`;
  const chosen = new Set(value);
  let known = [];
  const search = h("input", { type: "text", id, class: "mono", spellcheck: "false", autocomplete: "off", placeholder: "Find a route", "aria-label": "Find a route", "aria-describedby": `${id}-hint ${id}-error` });
  const list = h("div", { class: "route-list", role: "group", "aria-label": "Routes of the catalogue", tabindex: "-1" });
  const add = h("button", { class: "button button-quiet button-small", type: "button", id: `${id}-add`, hidden: true });
  const count = h("p", { class: "hint", role: "status", id: `${id}-count` });
  const error = h("p", { class: "field-error", id: `${id}-error`, role: "alert", hidden: true });
  const say = (text) => complain(search, text);

  const wanted = () => search.value.trim();
  const tell = () => {
    count.textContent = chosen.size === 0 ? "All routes." : chosen.size === 1 ? "1 route." : `${chosen.size} routes.`;
  };
  const draw = () => {
    const text = wanted().toLowerCase();
    // Chosen entries come first, so that they are visible, including those that are not routes of the catalogue.
    const all = [...new Set([...value, ...chosen, ...known])];
    const found = all.filter((route) => route.toLowerCase().includes(text));
    list.replaceChildren(...found.map(row), ...(found.length === 0 ? [h("p", { class: "hint" }, all.length === 0 ? "The list of routes could not be loaded. Enter a route." : "No route has this text.")] : []));
    const isNew = PATTERN.test(wanted()) && !all.includes(wanted());
    add.hidden = !isNew;
    add.textContent = `Add ${wanted()}`;
  };
  const row = (route) => {
    const box = h("input", { type: "checkbox", value: route, checked: chosen.has(route), on: { change: () => {
      if (box.checked) chosen.add(route);
      else chosen.delete(route);
      say("");
      tell();
    } } });
    return h("label", { class: "check mono" }, box, route);
  };
  const addWanted = () => {
    if (!PATTERN.test(wanted())) return;
    chosen.add(wanted());
    search.value = "";
    say("");
    draw();
    tell();
    search.focus();
  };
  search.addEventListener("input", draw);
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    // Enter would send the form.
    event.preventDefault();
    addWanted();
  });
  add.addEventListener("click", addWanted);
  draw();
  tell();
  loaded().then((routes) => {
    known = routes;
    draw();
  });
  const hint = h("p", { class: "hint", id: `${id}-hint` }, "Check the routes that the key may call; none for all. You can add a pattern, such as /quotes/*.");
  return {
    name,
    label,
    element: h("fieldset", { class: "field route-picker" }, h("legend", {}, label), hint, h("div", { class: "add-route" }, search, add), list, count, error),
    input: search,
    value: () => [...chosen].join("\n"),
    complain: say,
    isVisible: () => true,
    validate() {
      const left = PATTERN.test(wanted()) && !chosen.has(wanted());
      say(left ? "Add this route, or clear the field." : "");
      return !left;
    },
  };
}

/** The metered routes of the catalogue; none if it cannot be loaded. */
async function loaded() {
  try {
    const { endpoints } = await callApi("/endpoints.json");
    return endpoints.filter((route) => route.metered !== false).map(({ method, path }) => `${method} ${path}`);
  } catch {
    return [];
  }
}
