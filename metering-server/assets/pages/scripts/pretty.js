// JSON with indentation and colours. Tokens are copied from the text, so that numbers keep every digit.

import { h } from "/assets/dom.js";

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}[\],:]/g;
/** Longer texts are indented, but not coloured: every token would be an element. */
const COLOURED_MOST = 40_000;

/** Nodes for a text: indented if it is JSON, else as it is. */
export function pretty(text) {
  try {
    JSON.parse(text);
  } catch {
    return [text];
  }
  const coloured = text.length <= COLOURED_MOST;
  const nodes = [];
  let depth = 0;
  const tokens = text.match(TOKEN) ?? [];
  const line = () => `\n${"  ".repeat(depth)}`;
  tokens.forEach((token, place) => {
    const next = tokens[place + 1];
    const opens = token === "{" || token === "[";
    if (opens && (next === "}" || next === "]")) {
      nodes.push(token);
    } else if (opens) {
      depth += 1;
      nodes.push(token, line());
    } else if (token === "}" || token === "]") {
      const isEmpty = ["{", "["].includes(tokens[place - 1]);
      if (!isEmpty) depth -= 1;
      nodes.push(isEmpty ? token : line() + token);
    } else if (token === ",") {
      nodes.push(token, line());
    } else if (token === ":") {
      nodes.push(": ");
    } else {
      const kind = next === ":" ? "json-name" : token[0] === '"' ? "json-text" : "json-value";
      nodes.push(coloured ? h("span", { class: kind }, token) : token);
    }
  });
  return coloured ? nodes : [nodes.join("")];
}
