// Redraws parts of a page. Keyboard focus stays where it was.

const REACHABLE = "a[href], button, input, select, textarea, summary, [tabindex]";

/** Replaces an element with another. If the focus was in the old one, it moves to the same place in the new one. */
export function swap(old, fresh) {
  const place = [...old.querySelectorAll(REACHABLE)].indexOf(document.activeElement);
  old.replaceWith(fresh);
  if (place >= 0) fresh.querySelectorAll(REACHABLE)[place]?.focus({ preventScroll: true });
  return fresh;
}
