// Downloads of files. A plain link cannot fetch them: they need the key in a header, and come in several parts.

import { fetchText, sentence } from "/assets/api.js";
import { busy, h } from "/assets/dom.js";

/** A button that downloads the file at `path()`, and says so if it fails. `access` has the `key` or `credentials`. */
export function downloadButton(label, name, access, path, type = "text/csv") {
  const button = h("button", { class: "button button-quiet button-small", type: "button", "data-download": name }, label);
  const status = h("span", { class: "bad", role: "alert", hidden: true });
  button.addEventListener("click", () =>
    busy(button, async () => {
      status.hidden = true;
      try {
        save(name, await parts(path(), access), type);
      } catch (error) {
        status.textContent = ` ${sentence(error)}`;
        status.hidden = false;
      }
    }),
  );
  return h("span", { class: "download" }, button, status);
}

/** Saves a text as a file. */
export function save(name, parts, type) {
  const url = URL.createObjectURL(new Blob(parts, { type: `${type};charset=utf-8` }));
  const link = h("a", { href: url, download: name });
  link.click();
  // Later, since some browsers read the file after the click.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** All parts of a file: the service sends a long one in several, each with a header line. */
async function parts(first, access) {
  const texts = [];
  for (let path = first; path; ) {
    const { text, headers } = await fetchText(path, access);
    texts.push(texts.length === 0 ? text : text.slice(text.indexOf("\n") + 1));
    path = /<([^>]+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
  }
  return texts;
}
