// The lists of the account's settings, in which each row can be ended or changed: its members, and where it is signed in.

import { callApi, sentence } from "/assets/api.js";
import { busy, h, say } from "/assets/dom.js";

/**
 * Fills `place` with the list at `path`. `content(data, {again, act, problem})` makes elements of it: `again()` shows the list
 * again, `act(control, path, options, endsVisit)` sends a change first, and `problem` is where it says what went wrong.
 * `withheld` is shown for keys that may not see the list. `visit.key()` is the key or session of this visit,
 * `visit.here()` says whether its user is still on the page, and `visit.ended()` is called after a change that ends the
 * visit.
 */
export async function showList(place, visit, list) {
  if (!visit.here()) return;
  const problem = h("p", { class: "bad", role: "alert", hidden: true });
  const again = () => showList(place, visit, list);
  const controls = () => [...place.querySelectorAll("button, select")];
  const act = (control, path, options, endsVisit = false) =>
    busy(control, async () => {
      say(problem, "");
      try {
        await callApi(path, { key: visit.key(), ...options });
      } catch (error) {
        // It may have ended in the meantime.
        if (error.code !== "not_found") {
          say(problem, sentence(error));
          return;
        }
      }
      if (!visit.here()) return;
      if (endsVisit) {
        visit.ended();
        return;
      }
      const position = controls().indexOf(control);
      await again();
      // Keyboard focus stays where it was.
      controls().at(Math.min(position, controls().length - 1))?.focus();
    });
  try {
    const { data } = await callApi(list.path, { key: visit.key() });
    if (visit.here()) place.replaceChildren(...list.content(data, { again, act, problem }));
  } catch (error) {
    const isWithheld = error.code === "key_scope";
    if (visit.here()) place.replaceChildren(h("p", isWithheld ? { class: "soft" } : { class: "bad", role: "alert" }, isWithheld ? list.withheld : sentence(error)));
  }
}
