// Which operations the reference lists, and under which heading: metered routes first, then the service's own endpoints.

const METHODS = ["get", "post", "put", "patch", "delete", "head", "options", "trace"];
const METERED = "metered";
/** The heading of metered routes for which the catalogue names none. */
const UNGROUPED = "Metered routes";

/** The groups with their operations. `priced`: whether they are metered routes. */
export function groupsOf(api) {
  const groups = new Map();
  for (const tag of api.tags ?? []) {
    if (tag.name !== METERED) groups.set(tag.name, { id: `tag-${tag.name}`, title: capital(tag.name.replaceAll("_", " ")), about: tag.description, priced: false, operations: [] });
  }
  const metered = new Map((api["x-groups"] ?? []).map((title, place) => [title, meteredGroup(title, place)]));
  for (const operation of operationsOf(api)) {
    const tag = operation.tags?.[0] ?? "other";
    const [known, title] = tag === METERED ? [metered, operation["x-group"] ?? UNGROUPED] : [groups, tag];
    if (!known.has(title)) known.set(title, tag === METERED ? meteredGroup(title, known.size) : { ...meteredGroup(title, 0), id: `tag-${title}`, priced: false });
    known.get(title).operations.push(operation);
  }
  return [...metered.values(), ...groups.values()].filter(({ operations }) => operations.length > 0);
}

/** Its id is its position: titles may have no letters that an id could be made of. */
const meteredGroup = (title, place) => ({ id: `group-${place + 1}`, title: capital(title), priced: true, operations: [] });

/** The operations for customers. A `HEAD` of the service's own endpoints is the same as their `GET`, so it is left out; a metered one has its own price. */
function operationsOf(api) {
  return Object.entries(api.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method] && !(method === "head" && item.get && item.head.tags?.[0] !== METERED) && !item[method]["x-internal"]).map((method) => ({ path, method, ...item[method] })),
  );
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);
