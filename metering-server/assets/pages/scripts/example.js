// An example of a value from its schema: the required members, with the schema's own example where it has one.

const DEEPEST = 5;

export function exampleOf(api, reference, depth = 0) {
  const schema = reference.$ref ? (api.components?.schemas?.[reference.$ref.split("/").pop()] ?? {}) : reference;
  const given = schema.example ?? schema.examples?.[0] ?? schema.default ?? schema.const ?? schema.enum?.[0];
  if (given !== undefined) return given;
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices && depth < DEEPEST) return exampleOf(api, choices.find((choice) => choice.type !== "null") ?? {}, depth + 1);
  const type = [schema.type].flat().find((name) => name !== "null");
  if (type === "integer" || type === "number") return schema.minimum ?? 1;
  if (type === "boolean") return true;
  if (type === "array") return [];
  if (schema.properties && depth < DEEPEST) {
    const members = Object.entries(schema.properties).filter(([name]) => schema.required?.includes(name));
    return Object.fromEntries(members.map(([name, member]) => [name, exampleOf(api, member, depth + 1)]));
  }
  return type === "object" ? {} : "…";
}
