// A runtime behind the Tessera conformance suite: fill in the functions that yours has, under their names in C.
// What each takes and returns: docs/protocol.md of the project, under `runtime`.
// A runtime that is a C library needs none of this: --impl=cabi:/path/to/lib.so loads it.
import { rejected, returned, serve } from "./protocol.mjs";

const hello = {
  protocol: { minimum: 1, maximum: 1 },
  implementation: { name: "my-implementation", version: "0.1" },
  documents: ["runtime_abi"],
  capabilities: {}, // claim only what works
  arithmetic: { level: "strict" },
  parallel: true, // several processes may answer at once; take it away where they share a device
};

const contexts = new Set();
let created = 0;

const invalid = (message) => rejected("TESS_ERR_INVALID_VALUE", "call", message);

// `null` names the out parameters that are NULL pointers.
const methods = {
  "session.reset": () => {
    contexts.clear();
    return returned({});
  },
  "runtime.tessGetVersion": ({ null: missing = [] }) =>
    missing.length ? invalid(`tessGetVersion: ${missing[0]} is NULL`) : returned({ major: 1, minor: 0, patch: 0 }),
  "runtime.tessInit": ({ null: missing = [] }) => {
    if (missing.length) return invalid(`tessInit: ${missing[0]} is NULL`);
    contexts.add(++created);
    return returned({ context: created });
  },
  "runtime.tessShutdown": ({ context }) =>
    contexts.delete(context) ? returned({}) : invalid(`tessShutdown: context is ${context}, allowed is a live one`),
};

await serve(hello, methods);
