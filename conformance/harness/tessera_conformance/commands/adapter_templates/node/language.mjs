// A compiler behind the Tessera conformance suite: fill in the methods that yours has.
// What each method takes and returns: docs/protocol.md of the project, under `language`.
import { rejected, returned, serve, unsupported } from "./protocol.mjs";

const hello = {
  protocol: { minimum: 1, maximum: 1 },
  implementation: { name: "my-implementation", version: "0.1" },
  documents: ["language_ir"],
  capabilities: {}, // claim only what works
  arithmetic: { level: "strict" },
  parallel: true, // several processes may answer at once; take it away where they share a device
};

const TOKENS = /\s+|\/\/[^\n]*|\/\*[^]*?\*\/|([A-Za-z_][A-Za-z0-9_]*|[^])/g;
const DECLARATIONS = ["func", "kernel", "type", "let", "const", "mesh"];

const syntax = (message) => rejected("syntax", "parse", message, [{ category: "syntax", message }]);

const methods = {
  // The modules and their declarations, in source order. This one knows modules that declare nothing.
  "language.parse": ({ source }) => {
    const tokens = [...source.matchAll(TOKENS)].map((found) => found[1]).filter(Boolean);
    const modules = [];
    while (tokens.length) {
      const [word, name = "", opening = ""] = tokens.splice(0, 3);
      if (word !== "module" || !/^[A-Za-z_]/.test(name) || opening !== "{") {
        return syntax(`expected module NAME {, found ${word} ${name} ${opening}`);
      }
      const next = tokens.shift() ?? "the end";
      if (DECLARATIONS.includes(next)) return unsupported(`declarations of ${next}`);
      if (next !== "}") return syntax(`expected a declaration or }, found ${next}`);
      modules.push({ name, declarations: [] });
    }
    return returned({ modules });
  },
};

await serve(hello, methods);
