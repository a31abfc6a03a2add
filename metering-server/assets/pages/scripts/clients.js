// MCP clients, and how to add a server to each: a file or a command, and an install link where the client has one.

const json = (value) => JSON.stringify(value, null, 2);
const bearer = (key) => ({ Authorization: `Bearer ${key}` });

/** The name of the server in clients' files: the brand's name, as one word. */
export function serverName(brand) {
  return brand.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "") || "metering";
}

/** The variable that contains the key, for clients that read it from the environment. */
const variable = (name) => `${name.toUpperCase().replaceAll("-", "_").replace(/^(?=\d)/, "_")}_API_KEY`;

/**
 * Each client: where its text belongs, the text for a server's name, URL and key, and a note. `install` makes a link
 * that the client opens; `linkHasKey` says whether the key is in it.
 */
export const CLIENTS = [
  {
    id: "claude-code",
    name: "Claude Code",
    where: "Run this in a terminal.",
    text: ({ name, url, key }) => `claude mcp add --transport http ${name} ${url} --header "Authorization: Bearer ${key}"`,
  },
  {
    id: "claude-desktop",
    name: "Claude Desktop",
    where: "Settings, Developer, Edit Config: claude_desktop_config.json. Needs Node.js, and nothing to compile.",
    text: ({ name, url, key }) => {
      const insecure = url.startsWith("http:") ? ["--allow-http"] : [];
      // Claude Desktop for Windows splits arguments at spaces, so the header's value comes from the environment.
      const args = ["-y", "mcp-remote", url, ...insecure, "--header", "Authorization:${AUTH_HEADER}"];
      return json({ mcpServers: { [name]: { command: "npx", args, env: { AUTH_HEADER: `Bearer ${key}` } } } });
    },
    note: "Custom connectors (Settings, Connectors) need only the URL where this service offers OAuth: you choose there what Claude may spend. mcp-remote sends the key instead.",
  },
  {
    id: "cursor",
    name: "Cursor",
    where: "~/.cursor/mcp.json, or .cursor/mcp.json in a project",
    text: ({ name, url, key }) => json({ mcpServers: { [name]: { url, headers: bearer(key) } } }),
    install: ({ name, url, key }) => {
      const config = btoa(JSON.stringify({ url, headers: bearer(key) }));
      return `cursor://anysphere.cursor-deeplink/mcp/install?name=${encodeURIComponent(name)}&config=${encodeURIComponent(config)}`;
    },
    linkHasKey: true,
  },
  {
    id: "vs-code",
    name: "VS Code",
    where: ".vscode/mcp.json",
    text: ({ name, url }) => json({ inputs: [asked(name)], servers: { [name]: prompted(name, url) } }),
    install: ({ name, url }) => `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, ...prompted(name, url), inputs: [asked(name)] }))}`,
    note: "VS Code asks for the key once and keeps it, so that it is not in the file.",
  },
  {
    id: "codex",
    name: "Codex",
    where: "The first line in a terminal, the rest in ~/.codex/config.toml",
    text: ({ name, url, key }) => `export ${variable(name)}=${key}\n\n[mcp_servers.${name}]\nurl = "${url}"\nbearer_token_env_var = "${variable(name)}"`,
  },
  {
    id: "json",
    name: "Other",
    where: "The form that most other clients read",
    text: ({ name, url, key }) => json({ mcpServers: { [name]: { type: "http", url, headers: bearer(key) } } }),
  },
];

const asked = (name) => ({ type: "promptString", id: `${name}-key`, description: `${name} API key`, password: true });
const prompted = (name, url) => ({ type: "http", url, headers: bearer(`\${input:${name}-key}`) });
