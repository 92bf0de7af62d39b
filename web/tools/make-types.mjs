// Makes src/api/types.ts from api/openapi.json: a type per schema, and per operation its method, path, arguments and reply.
// usage: node tools/make-types.mjs ../api/openapi.json src/api/types.ts
import { readFileSync, writeFileSync } from "node:fs";

const [from, to] = process.argv.slice(2);
const api = JSON.parse(readFileSync(from, "utf8"));

const PLAIN = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

function typeOf(schema) {
  if (!schema) return "unknown";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
  if (schema.oneOf || schema.anyOf) return [...new Set((schema.oneOf ?? schema.anyOf).map(typeOf))].join(" | ");
  const kinds = [schema.type ?? "unknown"].flat();
  return [...new Set(kinds.map((kind) => ofKind(kind, schema)))].join(" | ");
}

function ofKind(kind, schema) {
  if (kind === "array") {
    const item = typeOf(schema.items);
    return schema.items ? `(${item})[]` : "unknown[]";
  }
  if (kind !== "object") return PLAIN[kind] ?? "unknown";
  if (schema.properties) return objectOf(schema);
  return `Record<string, ${schema.additionalProperties?.type ? typeOf(schema.additionalProperties) : "unknown"}>`;
}

function objectOf(schema) {
  const needed = new Set(schema.required ?? []);
  const members = Object.entries(schema.properties).map(([name, s]) => `${JSON.stringify(name)}${needed.has(name) ? "" : "?"}: ${typeOf(s)};`);
  return `{ ${members.join(" ")} }`;
}

function replyOf(op) {
  const ok = ["200", "201", "202"].map((status) => op.responses[status]).find(Boolean);
  const schema = ok?.content?.["application/json"]?.schema;
  return schema ? typeOf(schema) : "undefined";
}

function operation(method, path, op) {
  const parameters = (op.parameters ?? []).map((p) => (p.$ref ? api.components.parameters[p.$ref.split("/").pop()] : p));
  const args = parameters.filter((p) => p.in === "path" || p.in === "query")
    .map((p) => `${JSON.stringify(p.name)}${p.required ? "" : "?"}: ${typeOf(p.schema)};`);
  const body = op.requestBody?.content?.["application/json"]?.schema;
  return `  ${op.operationId}: { args: { ${args.join(" ")} }; body: ${body ? typeOf(body) : "undefined"}; reply: ${replyOf(op)} };`;
}

const all = Object.entries(api.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, op]) => [method.toUpperCase(), path, op]));
const lines = [
  "// Made from api/openapi.json by web/tools/make-types.mjs.  Not to be edited.",
  ...Object.entries(api.components.schemas).map(([name, schema]) => `export type ${name} = ${schema.properties ? objectOf(schema) : typeOf(schema)};`),
  "export interface Operations {",
  ...all.map((row) => operation(...row)),
  "}",
  "/** Method, path and permission of each operation. */",
  "export const operations: Record<keyof Operations, readonly [string, string, string]> = {",
  ...all.map(([method, path, op]) => `  ${op.operationId}: [${JSON.stringify(method)}, ${JSON.stringify(path)}, ${JSON.stringify(op["x-permission"] ?? "")}],`),
  "};",
  "",
];
writeFileSync(to, lines.join("\n"));
