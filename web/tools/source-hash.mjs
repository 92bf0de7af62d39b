// The SHA-256 of everything that the bundle is made from.  tools/check-web computes the same in Python, so that a stale
// bundle is found on machines without Node.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const TYPES = "src/api/types.ts"; // nothing of it is in the bundle
const INPUTS = ["index.html", "package-lock.json", "src", "tsconfig.json", "vite.config.ts"];

function* files(root, name) {
  if (!statSync(join(root, name)).isDirectory()) {
    yield name;
    return;
  }
  for (const entry of readdirSync(join(root, name))) yield* files(root, `${name}/${entry}`);
}

export function sourceHash(root) {
  const hash = createHash("sha256");
  const names = INPUTS.flatMap((input) => [...files(root, input)]).filter((name) => name !== TYPES).sort();
  for (const name of names) {
    const bytes = readFileSync(join(root, name));
    hash.update(`${name}\n${bytes.length}\n`).update(bytes);
  }
  return hash.digest("hex");
}
