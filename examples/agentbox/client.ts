// A session, a command, a file, live output: the agentbox interface from TypeScript, by gRPC-Web as in a browser.
//
//   npm install @connectrpc/connect @connectrpc/connect-web @bufbuild/protobuf @bufbuild/protoc-gen-es @bufbuild/buf
//   npx buf generate api --template '{"version":"v2","plugins":[{"local":"protoc-gen-es","out":"gen","opt":"target=ts"}]}'
//   npx tsx examples/agentbox/client.ts
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { SandboxService } from "../../gen/sandbox/v1/sandbox_pb.js";

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
  console.log((await box.exec({ sessionId, command: "python3 hello.py" })).stdout);
  for await (const part of box.execStream({ sessionId, command: "for i in 1 2 3; do echo $i; sleep 1; done" }))
    console.log(part.type, part.type === "exit" ? part.exitCode : part.data.trimEnd());
} finally {
  await box.destroySession({ sessionId });
}
