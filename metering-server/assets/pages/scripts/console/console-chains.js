// The health of the service, which also contains the names of its chains. The service asks every chain before it
// responds, which takes seconds when one is down.

import { admin } from "/assets/console-api.js";

let known = null;

/** The health, read now. */
export async function readHealth() {
  const health = await admin("/health");
  known = health.chains;
  return health;
}

/** The chains as last read; their names do not change. Pages are shown without them if they fail to load. */
export const chains = async () => known ?? (await readHealth().catch(() => null))?.chains ?? [];

/** The chains read so far. */
export const knownChains = () => known ?? [];

/** A chain's name, or else its id. */
export function chainName(list, id) {
  const found = list.find((chain) => chain.chain_id === id);
  return found ? found.name : `chain ${id}`;
}
