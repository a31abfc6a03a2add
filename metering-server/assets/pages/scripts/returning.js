// Repeats work when the user returns to the page.

/**
 * Calls `work` when this window gets the focus, unless it was done less than `least` milliseconds ago. Returns a
 * function that records that it was done.
 */
export function onReturn(work, least) {
  let done = performance.now();
  const again = () => {
    if (document.visibilityState === "hidden" || performance.now() - done < least) return;
    done = performance.now();
    work();
  };
  addEventListener("focus", again);
  document.addEventListener("visibilitychange", again);
  return () => {
    done = performance.now();
  };
}
