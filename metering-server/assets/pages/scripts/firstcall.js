// A call to show as an example: a real route of the catalogue, with a value for each of its parameters.

import { callApi } from "/assets/api.js";

const VALUES = { integer: "42", number: "1.5", boolean: "true", string: "example" };

/** The example: method, template, the target to call, its description, and its parameters in words. */
export async function exampleCall() {
  const { endpoints } = await callApi("/endpoints.json");
  const isPlainGet = (route) => !route.sse && !route.websocket && (route.method ?? "GET") === "GET";
  const callable = endpoints.filter((route) => route.metered && isPlainGet(route));
  const needed = (route) => (route.params ?? []).filter((param) => param.required || param.in === "path");
  const isPlain = (param) => param.example !== undefined || ["integer", "boolean"].includes(param.type);
  const best =
    callable.find((route) => needed(route).length === 1 && needed(route).every(isPlain)) ??
    callable.find((route) => needed(route).length === 0) ??
    callable[0];
  if (!best) throw new Error("The service has no metered route.");
  const values = needed(best).map((param) => [param, String(param.example ?? VALUES[param.type] ?? VALUES.string)]);
  let target = best.path;
  const query = new URLSearchParams();
  for (const [param, value] of values) {
    if (param.in === "path") target = target.replace(`{${param.name}}`, encodeURIComponent(value));
    else query.set(param.name, value);
  }
  if (query.size > 0) target += `?${query}`;
  const words = values.length === 0 ? "" : ` with ${values.map(([param, value]) => `${param.name} ${value}`).join(" and ")}`;
  return { method: "GET", template: best.path, target, description: (best.description ?? "").replace(/\.$/, ""), words };
}

/** The tool of a call's route: the one whose name ends like the route's path. */
export function toolOf({ template }, names) {
  const folded = template.replace(/[^A-Za-z0-9-]+/g, "_").replace(/^_+|_+$/g, "");
  // The shortest, since other routes' names can end the same: bds_price, not bds_v2_price.
  const ending = names.filter((name) => name === folded || name.endsWith(`_${folded}`));
  return ending.sort((one, other) => one.length - other.length)[0];
}
