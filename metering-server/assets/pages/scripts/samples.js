// An operation's request as code to copy. The key stays in an environment variable, so a copied sample has no secret.

/** Where metered routes are: on another origin than the pages, if the operator has separated them. */
export const apiOrigin = () => document.body.dataset.apiUrl || location.origin;

export const LANGUAGES = [
  { id: "curl", title: "curl", code: curl },
  { id: "python", title: "Python", code: python },
  { id: "typescript", title: "TypeScript", code: typescript },
];

/** The path and query of a request. Path parameters without a value stay in braces. */
export function targetOf(operation, values) {
  const parameters = (operation.parameters ?? []).filter(({ name }) => values.get(name));
  const path = operation.path.replace(/\{([^}]+)\}/g, (placeholder, name) => (values.get(name) ? encodeURIComponent(values.get(name)) : placeholder));
  const query = parameters.filter((parameter) => parameter.in === "query").map(({ name }) => `${encodeURIComponent(name)}=${encodeURIComponent(values.get(name))}`);
  return path + (query.length > 0 ? `?${query.join("&")}` : "");
}

/** The data of a request that the samples need. */
export function requestOf(operation, values, body) {
  return {
    method: operation.method.toUpperCase(),
    url: apiOrigin() + targetOf(operation, values),
    needsKey: (operation.security ?? []).length > 0,
    streams: "text/event-stream" in (operation.responses?.["200"]?.content ?? {}),
    body,
  };
}

const shell = (text) => (/^[\w.:/@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

function curl({ method, url, needsKey, streams, body }) {
  const lines = [`curl ${streams ? "-N " : ""}${method === "GET" ? "" : method === "HEAD" ? "-I " : `-X ${method} `}${shell(url)}`];
  if (needsKey) lines.push(`-H "Authorization: Bearer $API_KEY"`);
  if (body) lines.push(`-H 'Content-Type: application/json'`, `-d ${shell(body)}`);
  return lines.join(" \\\n  ");
}

function python({ method, url, needsKey, streams, body }) {
  const headers = [needsKey && `"Authorization": f"Bearer {os.environ['API_KEY']}"`, body && `"Content-Type": "application/json"`].filter(Boolean);
  const given = [JSON.stringify(url), headers.length > 0 && `headers={${headers.join(", ")}}`, body && `content=${pythonText(body)}`].filter(Boolean);
  const imports = [...(needsKey ? ["import os", ""] : []), "import httpx  # pip install httpx", ""];
  if (streams) {
    return [...imports, `with httpx.stream("${method}", ${given.join(", ")}, timeout=None) as response:`, "    response.raise_for_status()", "    for line in response.iter_lines():", "        print(line)"].join("\n");
  }
  return [...imports, `response = httpx.request(`, `    "${method}",`, ...given.map((line) => `    ${line},`), ")", "response.raise_for_status()", "print(response.json())"].join("\n");
}

/** A JSON text as a Python string: raw over several lines, or with escapes, which mean the same in JSON and Python. */
const pythonText = (text) => (text.includes("\n") && text.endsWith("}") && !text.includes("'''") ? `r'''${text}'''` : JSON.stringify(text));

/** A JSON text as TypeScript: a value if it round-trips, else a string. */
function typescriptText(text) {
  let same = false;
  try {
    same = JSON.stringify(JSON.parse(text), null, 2) === text && !text.includes('"__proto__"');
  } catch {
    // Not JSON yet: it is being typed.
  }
  return same ? `JSON.stringify(${text.replaceAll("\n", "\n  ")})` : JSON.stringify(text);
}

function typescript({ method, url, needsKey, streams, body }) {
  const headers = [needsKey && "Authorization: `Bearer ${process.env.API_KEY}`", body && `"Content-Type": "application/json"`].filter(Boolean);
  const options = [method !== "GET" && `method: "${method}"`, headers.length > 0 && `headers: { ${headers.join(", ")} }`, body && `body: ${typescriptText(body)}`].filter(Boolean);
  const given = options.length > 0 ? `, {\n${options.map((option) => `  ${option},`).join("\n")}\n}` : "";
  const lines = [`const response = await fetch(${JSON.stringify(url)}${given});`, "if (!response.ok) throw new Error(await response.text());"];
  if (streams) {
    lines.push("const events = response.body?.pipeThrough(new TextDecoderStream()) ?? [];", "for await (const event of events) console.log(event);");
  } else {
    lines.push("console.log(await response.json());");
  }
  return lines.join("\n");
}
