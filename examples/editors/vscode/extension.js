// Starts `tessera-reference lsp` for Tessera programs and IR text; without the server the colours remain.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const [command, ...args] = vscode.workspace.getConfiguration("tessera").get("command");
  client = new LanguageClient(
    "tessera",
    "Tessera",
    { command, args },
    { documentSelector: [{ language: "tessera" }, { language: "mlir" }] },
  );
  return client.start();
};

exports.deactivate = () => client?.stop();
