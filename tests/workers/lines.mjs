// Serves requests of the tests: each line of the input is a JSON document, and each line of the output is
// `{"result": …}` or `{"error": …}`.

import { createInterface } from "node:readline";
import { inspect } from "node:util";

/** `replacer` prints what JSON does not have. */
export async function serve(run, replacer) {
  for await (const line of createInterface({ input: process.stdin })) {
    const response = await run(JSON.parse(line)).then(
      (result) => ({ result }),
      (failure) => ({ error: inspect(failure) }),
    );
    process.stdout.write(`${JSON.stringify(response, replacer)}\n`);
  }
}
