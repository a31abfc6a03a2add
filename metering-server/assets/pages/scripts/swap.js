// Parts of a page that are drawn again. The keyboard stays where it was.

const REACHABLE = "a[href], button, input, select, textarea, summary, [tabindex]";

/** Puts an element in the place of another. If the focus was in that, it goes to the same place in the new one. */
export function swap(old, fresh) {
  const place = [...old.querySelectorAll(REACHABLE)].indexOf(document.activeElement);
  old.replaceWith(fresh);
  if (place >= 0) fresh.querySelectorAll(REACHABLE)[place]?.focus({ preventScroll: true });
  return fresh;
}
