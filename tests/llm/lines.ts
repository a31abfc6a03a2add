// Serves requests of the tests: each line of the input is a JSON list of arguments, and each line of the output is
// `{"result": …}` or `{"error": …}`.

import { createInterface } from "node:readline";
import { inspect } from "node:util";

export async function serve(run: (args: string[]) => Promise<unknown>): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const response = await run(JSON.parse(line)).then(
      (result) => ({ result }),
      (failure) => ({ error: inspect(failure) }),
    );
    process.stdout.write(`${JSON.stringify(response)}\n`);
  }
}
