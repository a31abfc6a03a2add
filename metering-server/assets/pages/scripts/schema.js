// Shows JSON schemas as nested lists.

import { h } from "/assets/dom.js";
import { prose } from "/assets/prose.js";

const DEEPEST = 4;

/** The schema that a reference points to, and its name. */
function resolve(api, schema = {}) {
  if (!schema.$ref) return { schema, name: undefined };
  const name = schema.$ref.split("/").pop();
  return { schema: api.components?.schemas?.[name] ?? {}, name };
}

/** Merges a schema with its `allOf` parts. */
export function merged(api, schema) {
  const parts = (schema.allOf ?? []).map((part) => merged(api, resolve(api, part).schema));
  return parts.reduce(
    (all, part) => ({ ...part, ...all, properties: { ...part.properties, ...all.properties }, required: [...(all.required ?? []), ...(part.required ?? [])] }),
    schema,
  );
}

/** A type in a word or two. */
export function typeOf(api, reference) {
  const { schema, name } = resolve(api, reference);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return [...new Set(choices.map((choice) => typeOf(api, choice)))].join(" or ");
  const types = [schema.type ?? []].flat();
  if (types.includes("array")) return `list of ${typeOf(api, schema.items)}`;
  if (types.length === 0) return name ?? "any";
  const words = types.join(" or ");
  return schema.format && !["double", "int32", "int64"].includes(schema.format) ? `${words} (${schema.format})` : words;
}

/** The fields of a schema, or its type if it has none. */
export function schemaOf(api, reference, depth = 0) {
  const schema = merged(api, resolve(api, reference).schema);
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices && depth < DEEPEST) {
    const shapes = choices.filter((choice) => choice.type !== "null");
    if (shapes.some((choice) => resolve(api, choice).schema.properties)) {
      return h("div", { class: "stack-gap" }, ...shapes.flatMap((choice, place) => [place > 0 && h("p", { class: "soft" }, "or"), schemaOf(api, choice, depth)].filter(Boolean)));
    }
  }
  const inner = [schema.type].flat().includes("array") ? merged(api, resolve(api, schema.items).schema) : schema;
  const fields = Object.entries(inner.properties ?? {});
  if (fields.length === 0 || depth >= DEEPEST) return h("p", { class: "soft" }, typeOf(api, reference));
  return h("ul", { class: "schema" }, ...fields.map(([name, field]) => item(api, name, field, inner.required?.includes(name), depth)));
}

function item(api, name, field, required, depth) {
  const about = field.description ?? resolve(api, field).schema.description;
  const nested = hasFields(api, field) && depth + 1 < DEEPEST;
  return h(
    "li",
    {},
    h("code", {}, name),
    h("span", { class: "type" }, `${typeOf(api, field)}${required ? "" : ", optional"}`),
    about && h("span", { class: "about" }, ...prose(about, { inline: true })),
    nested && schemaOf(api, field, depth + 1),
  );
}

function hasFields(api, field) {
  const schema = merged(api, resolve(api, field).schema);
  const inner = [schema.type].flat().includes("array") ? merged(api, resolve(api, schema.items).schema) : schema;
  const choices = schema.oneOf ?? schema.anyOf ?? [];
  return Object.keys(inner.properties ?? {}).length > 0 || choices.some((choice) => resolve(api, choice).schema.properties);
}
