"""`tessera-reference lsp` as an editor meets it: messages over standard input and output."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.cases import clauses_directory
from tessera_conformance.registry import load_registry
from tessera_reference.cli import main
from tessera_reference.commands.hover import program_hover, words
from tessera_reference.ir.operation import SPELLINGS
from tessera_reference.language import format_program
from tessera_reference.language.parser import RESERVED

LONGEST = 60  # seconds, after which the server is taken to hang

GOOD = """module m {
  func f(a: tensor<2x3xfp32>, b: tensor<3x2xfp32>) -> tensor<2x2xfp32> {
    return op.matmul(a, b);
  }
}
"""
BAD = GOOD.replace("op.matmul(a, b)", "op.matmul(a, a)")


class Client:
    """An editor: it asks, and keeps the diagnostics that come."""

    def __init__(self, encodings: list[str]) -> None:
        command = [sys.executable, "-m", "tessera_reference", "lsp"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.timer = threading.Timer(LONGEST, self.process.kill)
        self.timer.start()
        self.count = 0
        self.published: list[dict[str, Any]] = []
        general = {"general": {"positionEncodings": encodings}} if encodings else {}
        self.server = self.ask("initialize", processId=None, rootUri=None, capabilities=general)
        self.tell("initialized")

    def tell(self, method: str, **params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, **params: Any) -> Any:
        self.count += 1
        self._send({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        while (answer := self.read()).get("id") != self.count:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        header = self.process.stdout.readline()
        assert header.startswith(b"Content-Length: "), header
        while self.process.stdout.readline().strip():
            pass
        message: dict[str, Any] = json.loads(self.process.stdout.read(int(header.split()[1])))
        if message.get("method") == "textDocument/publishDiagnostics":
            self.published.append(message["params"])
        return message

    def open(self, text: str, uri: str) -> list[dict[str, Any]]:
        document = {"uri": uri, "languageId": "tessera", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)
        return self.diagnostics(uri, 1)

    def change(self, text: str, uri: str, version: int) -> None:
        document = {"uri": uri, "version": version}
        self.tell("textDocument/didChange", textDocument=document, contentChanges=[{"text": text}])

    def diagnostics(self, uri: str, version: int) -> list[dict[str, Any]]:
        """The diagnostics of a version, when they come."""
        while not self.published or (self.published[-1]["uri"], self.published[-1].get("version")) != (uri, version):
            self.read()
        diagnostics: list[dict[str, Any]] = self.published[-1]["diagnostics"]
        return diagnostics

    def hover(self, uri: str, line: int, character: int) -> Any:
        position = {"line": line, "character": character}
        return self.ask("textDocument/hover", textDocument={"uri": uri}, position=position)

    def format(self, uri: str) -> Any:
        options = {"tabSize": 2, "insertSpaces": True}
        return self.ask("textDocument/formatting", textDocument={"uri": uri}, options=options)

    def end(self) -> int:
        """End the session; the exit code."""
        self.ask("shutdown")
        self.tell("exit")
        code = self.process.wait()
        self.close()
        return code

    def close(self) -> None:
        self.timer.cancel()
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    pytest.importorskip("pygls", reason="pip install pygls")
    client = Client([])
    yield client
    client.close()


def range_of(diagnostic: dict[str, Any]) -> tuple[int, int, int, int]:
    start, end = diagnostic["range"]["start"], diagnostic["range"]["end"]
    return start["line"], start["character"], end["line"], end["character"]


def test_a_session() -> None:
    """A file with an error is opened and corrected, a word is explained, the text is formatted."""
    pytest.importorskip("pygls", reason="pip install pygls")
    client, uri = Client([]), "file:///session.tsr"
    try:
        (shapes,) = client.open(BAD, uri)
        assert range_of(shapes) == (2, 11, 2, 26)
        assert (shapes["severity"], shapes["code"], shapes["source"]) == (1, "LANG-05.4-01", "tessera-reference")
        assert shapes["message"].startswith("matmul: inner dimensions differ: 3 and 2\n")
        assert "requires a.shape[-1] == b.shape[-2]" in shapes["message"]
        client.change(GOOD, uri, 2)
        assert client.diagnostics(uri, 2) == []

        hover = client.hover(uri, 2, 16)
        assert "op.matmul(a: tensor, b: tensor, " in hover["contents"]["value"]
        assert "LANG-05.2-02" in hover["contents"]["value"] and "docs/operations.md" in hover["contents"]["value"]
        assert range_of(hover) == (2, 14, 2, 20)
        assert "LANG-02.3-28" in client.hover(uri, 2, 4)["contents"]["value"]  # return
        assert client.hover(uri, 2, 21) is None  # the name a

        assert client.format(uri) == []
        line = GOOD.replace("\n", "").replace("  ", " ")
        client.change(line, uri, 3)
        (edit,) = client.format(uri)
        assert edit["newText"] == GOOD
        assert range_of(edit) == (0, 0, 0, len(line))

        client.tell("textDocument/didClose", textDocument={"uri": uri})
        assert client.end() == 0
        assert client.published[-1] == {"uri": uri, "diagnostics": []}
    finally:
        client.close()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("encodings", "column"), [([], 22), (["utf-8"], 29), (["utf-32", "utf-16"], 19)])
def test_columns_are_in_the_units_that_the_editor_asks_for(encodings: list[str], column: int) -> None:
    """Three characters outside the BMP, before an error of their line, are six units of UTF-16."""
    pytest.importorskip("pygls", reason="pip install pygls")
    client, uri = Client(encodings), "file:///units.tsr"
    try:
        (shapes,) = client.open(BAD.replace("    return", "  /* 𝒳𝒴é𝒵 */return"), uri)
        assert range_of(shapes) == (2, column, 2, column + 15)
        assert range_of(client.hover(uri, 2, column + 4)) == (2, column + 3, 2, column + 9)
    finally:
        client.close()


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_lines_end_as_in_the_protocol(client: Client, end: str) -> None:
    """A line separator of Unicode in a comment ends no line."""
    uri = f"file:///{end.encode().hex()}.tsr"
    (shapes,) = client.open(BAD.replace("module", "/* \u2028 */ module").replace("\n", end), uri)
    assert range_of(shapes) == (2, 11, 2, 26)
    assert range_of(client.hover(uri, 2, 12)) == (2, 11, 2, 13)


def test_a_syntax_error_is_shown_and_not_formatted(client: Client) -> None:
    (missing,) = client.open(GOOD.replace(");\n", ")\n"), "file:///syntax.tsr")
    assert (range_of(missing), missing["code"]) == ((3, 2, 3, 3), "LANG-02.3-01")
    assert client.format("file:///syntax.tsr") == []


BREAKING = {
    "empty": "",
    "binary": "\0\x01\ufffe",
    "surrogate": "module m { \ud800 }",
    "comment": "/* module",
    "deep": "module m { let x: int32 = " + "(" * 100_000,
    "chain": "module m { let x: int32 = 1" + " + 1" * 50_000 + "; }",
    "braces": "}" * 1000,
}


@pytest.mark.parametrize("name", BREAKING)
def test_no_document_ends_the_server(client: Client, name: str) -> None:
    uri = f"file:///{name}.tsr"
    client.open(BREAKING[name], uri)
    client.hover(uri, 0, 5)
    client.hover(uri, 10**6, 10**6)
    client.format(uri)
    client.change(GOOD, uri, 2)
    assert client.diagnostics(uri, 2) == []


def test_a_request_that_makes_no_sense_ends_nothing(client: Client) -> None:
    """The document after a position without a number is checked."""
    client.tell("textDocument/hover", textDocument={"uri": "file:///none.tsr"}, position={"line": "first"})
    client.tell("textDocument/unknown")
    assert client.open("", "file:///next.tsr") == []


def test_only_the_newest_of_many_versions_counts(client: Client) -> None:
    """Versions that come faster than they are checked are passed over."""
    uri, large = "file:///many.tsr", GOOD.replace("return", "a = a + a;\n" * 2000 + "return")
    client.open(GOOD, uri)
    before = len(client.published)
    for version in range(2, 40):
        client.change(large + " " * version, uri, version)
    client.change(BAD, uri, 40)
    assert len(client.diagnostics(uri, 40)) == 1
    assert len(client.published) - before < 20


def test_a_closed_document_has_no_diagnostics(client: Client) -> None:
    """A check that ends behind the closing publishes nothing."""
    uri, large = "file:///closed.tsr", BAD.replace("return", "a = a + a;\n" * 2000 + "return")
    document = {"uri": uri, "languageId": "tessera", "version": 1, "text": large}
    client.tell("textDocument/didOpen", textDocument=document)
    client.tell("textDocument/didClose", textDocument={"uri": uri})
    client.open(GOOD, "file:///behind.tsr")
    assert [published for published in client.published if published["uri"] == uri][-1]["diagnostics"] == []


def test_ir_text_is_checked_and_explained(client: Client, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "p.tsr"
    file.write_text(GOOD, encoding="utf-8")
    for level in ("graph", "schedule", "tile", "target"):
        assert main(["lower", str(file), "--to", level]) == 0
        text = capsys.readouterr().out
        assert client.open(text, f"file:///{level}.mlir") == []
        wrong = text.replace('"tessera.graph.return"', '"tessera.graph.retrun"')
        unknown, *_ = client.open(wrong, f"file:///wrong-{level}.mlir")
        assert wrong.split("\n")[unknown["range"]["start"]["line"]].strip().startswith('"tessera.graph.retrun"')
    matmul = next(i for i, line in enumerate(BAD_IR.split("\n")) if "matmul" in line)
    (shapes,) = client.open(BAD_IR, "file:///bad.mlir")
    assert (shapes["range"]["start"]["line"], shapes["code"]) == (matmul, "LANG-05.4-01")
    column = BAD_IR.split("\n")[matmul].index("matmul")
    assert "LANG-05.2-02" in client.hover("file:///bad.mlir", matmul, column)["contents"]["value"]
    assert client.format("file:///bad.mlir") == []
    assert client.open('"other.module"() : () -> ()', "file:///others.mlir") == []


BAD_IR = """"builtin.module"() ({
  "tessera.graph.func"() ({
  ^bb0(%a: tensor<2x3xfp32>):
    %0 = "tessera.graph.matmul"(%a, %a) {accum = "fp32"} : (tensor<2x3xfp32>, tensor<2x3xfp32>) -> tensor<2x3xfp32>
    "tessera.graph.return"(%0) : (tensor<2x3xfp32>) -> ()
  }) {sym_name = "f", function_type = (tensor<2x3xfp32>) -> (tensor<2x3xfp32>)} : () -> ()
}) {sym_name = "m"} : () -> ()
"""


def test_a_failure_of_the_reference_is_a_diagnostic(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pygls", reason="pip install pygls")
    from tessera_reference.commands import language_server
    from tessera_reference.ir.targets import DEFAULT, target_of

    def fail(text: str, path: str) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(language_server, "compile_source", fail)
    (failed,) = language_server.diagnose(GOOD, "p.tsr", target_of(DEFAULT))
    assert failed.message == "the reference failed on this document: RecursionError: too deep"


@pytest.mark.parametrize("spelling", [spelling for spelling in SPELLINGS if "." in spelling])
def test_every_operation_is_explained(spelling: str) -> None:
    text = f"let y = {spelling}(x);"
    hover = program_hover(text, text.index("(") - 1)
    assert hover is not None
    assert text[hover.start : hover.end] == spelling.partition(".")[2]
    assert f"```tessera\n{spelling}(" in hover.markdown
    assert all(clause in hover.markdown for clause in SPELLINGS[spelling].clauses)


def test_every_reserved_word_is_explained_and_every_clause_exists() -> None:
    assert sorted(RESERVED - words().keys()) == []
    known = set(load_registry(clauses_directory()).clauses)
    assert {clause for row in words().values() for clause in row["clauses"]} <= known


@pytest.mark.parametrize(
    ("text", "at", "shown"),
    [
        ("schedule.tile(C, m=1);", 10, "LANG-06.1-01"),
        ("@schedule(tile=1)", 0, "LANG-02-06"),
        ("a @ b", 2, "a: tensor @ b: tensor"),
        ("a + b", 2, "LANG-02.3-61"),
        ("let t: tensor<2xfp32> = 1;", 8, "LANG-02.2-14"),
        ("let t: tensor<2xfp32> = 1;", 13, None),
        ("tensor + 1", 2, None),
        ('"let" /* let */ // let', 2, None),
        ('"let" /* let */ // let', 10, None),
        ("x.let", 3, None),
        ("", 0, None),
    ],
)
def test_what_stands_at_a_place(text: str, at: int, shown: str | None) -> None:
    hover = program_hover(text, at)
    assert (hover is None) if shown is None else (hover is not None and shown in hover.markdown)


def test_without_the_extra_the_remedy_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = builtins.__import__

    def without_pygls(name: str, *arguments: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "pygls":
            raise ImportError(name)
        return imported(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_pygls)
    assert main(["lsp"]) == 2
    install = "pip install 'tessera-conformance[lsp]'"
    assert capsys.readouterr().err == f"error: pygls: not installed; this needs it; {install}\n"


def test_an_unknown_target_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lsp", "--target", "sm_1"]) == 2
    assert "sm_1" in capsys.readouterr().err


def test_the_formatted_text_is_that_of_fmt() -> None:
    assert format_program(GOOD) == GOOD
