// The build of the dashboard: small hashed files below dist/, each compressed once here, so that holtd only embeds them.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";
import { sourceHash } from "./tools/source-hash.mjs";

const TYPES: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

/** Replaces each file of the bundle by its gzip form and lists them in manifest.json. */
function compress(): Plugin {
  return {
    name: "holt-compress",
    apply: "build",
    writeBundle(options, bundle) {
      const dir = options.dir ?? "dist";
      const files = Object.keys(bundle).sort().map((name) => {
        const path = join(dir, name);
        const bytes = readFileSync(path);
        const packed = gzipSync(bytes, { level: 9 });
        writeFileSync(`${path}.gz`, packed);
        rmSync(path);
        return { path: name, type: TYPES[name.split(".").pop() ?? ""] ?? "application/octet-stream", size: bytes.length, packed: packed.length };
      });
      writeFileSync(join(dir, "manifest.json"), JSON.stringify({ source: sourceHash(import.meta.dirname), files }, null, 1) + "\n");
    },
  };
}

export default defineConfig({
  plugins: [compress()],
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { output: { entryFileNames: "assets/[name]-[hash].js", chunkFileNames: "assets/[name]-[hash].js", assetFileNames: "assets/[name]-[hash][extname]" } },
  },
  server: { proxy: { "/holt": { target: process.env.HOLT_SERVER ?? "http://127.0.0.1:8122", ws: true } } },
});
