// A session, a command, a file, live output: the agentbox interface from TypeScript, by gRPC-Web as in a browser.
//
//   npm install @connectrpc/connect @connectrpc/connect-web @bufbuild/protobuf
//   npx tsx examples/agentbox/client.ts
//
// gen/ is made of api/sandbox/v1/sandbox.proto by `make proto`. HOLT_URL says where holtd listens (default http://127.0.0.1:8122),
// HOLT_TOKEN who asks; a port of --seed-ports needs no token.
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { SandboxService } from "./gen/sandbox/v1/sandbox_pb.js";

const token = process.env.HOLT_TOKEN;
const signed: Interceptor = (next) => (req) => {
  if (token) req.header.set("authorization", `Bearer ${token}`);
  return next(req);
};
const box = createClient(
  SandboxService,
  createGrpcWebTransport({ baseUrl: process.env.HOLT_URL ?? "http://127.0.0.1:8122", interceptors: [signed] }),
);

const sessionId = (await box.createSession({})).session!.sessionId;
try {
  await box.writeFile({ sessionId, path: "hello.py", content: "print('hello')" });
  console.log((await box.exec({ sessionId, command: "python3 hello.py" })).stdout.trimEnd());
  for await (const part of box.execStream({ sessionId, command: "for i in 1 2 3; do echo $i; sleep 0.2; done" }))
    console.log(part.type, part.type === "exit" ? part.exitCode : part.data.trimEnd());
} finally {
  await box.destroySession({ sessionId });
}
