// The token of a link that came by mail. It is in the fragment, which is never sent, so only the button uses it: programs
// that open the links in mail change nothing.

const TOKEN = /^#(eml_[A-Za-z0-9]{43})$/;
const SIGN_IN = /^#sign-in=(eml_[A-Za-z0-9]{43})$/;

/** The token in this page's URL, or null. */
export const linkToken = () => TOKEN.exec(location.hash)?.[1] ?? null;

/** The token in this page's URL if it is that of a link for signing in, or null. */
export const signInToken = () => SIGN_IN.exec(location.hash)?.[1] ?? null;

/** Removes a used token from the address bar and the history. */
export const forgetLink = () => history.replaceState(null, "", location.pathname);
