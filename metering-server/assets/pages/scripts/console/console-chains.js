// The chains of the service, by name.

import { admin } from "/assets/console-api.js";

/** The chains, or an empty list if the service does not say. A page is still worth showing without their names. */
export const chains = () => admin("/health").then(({ chains: list }) => list).catch(() => []);

/** A chain in words: its name, or else its id. */
export function chainName(list, id) {
  const known = list.find((chain) => chain.chain_id === id);
  return known ? known.name : `chain ${id}`;
}
