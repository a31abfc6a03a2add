// An example value for a schema: the required members, with the schema's own example where it has one.

import { merged } from "/assets/schema.js";

const DEEPEST = 5;

export function exampleOf(api, reference, depth = 0) {
  const resolved = reference.$ref ? (api.components?.schemas?.[reference.$ref.split("/").pop()] ?? {}) : reference;
  const schema = resolved.allOf ? merged(api, resolved) : resolved;
  const given = schema.example ?? schema.examples?.[0] ?? schema.default ?? schema.const ?? schema.enum?.[0];
  if (given !== undefined) return given;
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices && !schema.properties && depth < DEEPEST) return exampleOf(api, choices.find((choice) => choice.type !== "null") ?? {}, depth + 1);
  const type = [schema.type].flat().find((name) => name !== "null");
  if (type === "integer" || type === "number") return schema.minimum ?? 1;
  if (type === "boolean") return true;
  if (type === "array") return itemsOf(api, schema, depth);
  if (schema.properties && depth < DEEPEST) {
    // The list of required members keeps the author's order; the document sorts the properties of the service's own schemas.
    const members = (schema.required ?? []).filter((name) => Object.hasOwn(schema.properties, name));
    return Object.fromEntries(members.map((name) => [name, exampleOf(api, schema.properties[name], depth + 1)]));
  }
  return type === "object" ? {} : "…";
}

/** A list with one item, if the schema describes its items. Only required lists are in an example. */
function itemsOf(api, schema, depth) {
  if (depth >= DEEPEST) return [];
  if (schema.prefixItems) return schema.prefixItems.map((item) => exampleOf(api, item, depth + 1));
  return typeof schema.items === "object" ? [exampleOf(api, schema.items, depth + 1)] : [];
}
