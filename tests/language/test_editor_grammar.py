"""The TextMate grammar of editors sees the words of a text as the lexer sees them."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tessera_reference.ir.operation import SPELLINGS
from tessera_reference.language.parser import RESERVED, Lexer, Token
from tessera_reference.numerics.formats import DTYPES

from .textmate import Piece, Walk

ROOT = Path(__file__).resolve().parents[2]
EXTENSION = ROOT / "examples" / "editors" / "vscode"
GRAMMAR = json.loads((EXTENSION / "syntaxes" / "tessera.tmLanguage.json").read_text(encoding="utf-8"))
PROGRAMS = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.tsr"))]
OPERATIONS = [f"  let y: tensor<2xfp32> = {spelling}(x);" for spelling in SPELLINGS if "." in spelling]
WORDS = [f"{word} + {word}_x" for word in sorted(RESERVED | set(DTYPES))]
LINES = [
    'let f: tensor<128x64xbf16; layout=row_major> = 1.5e-3 + 2e5 * 0. / 7; // op.matmul "text"',
    "let c: tensor<?xNx2xcomplex64> = c; let d: tensor<Lxcomplex128> = d; let b: tensor<4xbool>=e;",
    "memref<16x16xfp8_e4m3>[addrspace=shared] fragment<16,16,16,bf16; layout=row_major>",
    "mesh M = mesh<axes=[rows, columns], shape=[2, 4]>; type T = tensor<4xint8>;",
    'barrier("a \\"quoted\\" // word\\n"); assert(x >= 0, "/* no comment */"); assert = tensor + memref;',
    "/* one let 1 */ let /* two */ x: fp32 = /* func\nop.exp 3 // */ 4; // */ let",
    'func g(A: tensor<4xfp32>, n: int32 = (1 + 2), h: fn(bool) -> tf32) -> int64 @{a=true, b="text", n=[1, -2]} { }',
    "if (a <= b) { x = op.softmax(y, axis=-1) @{dtype=fp32}; } else { while (a != b) { return; } }",
    'for (i, j in 0:n:2) { dist.all_reduce(G, axis="dp", op="sum"); schedule.tile(C, m=128); }',
    'numerics.profile("strict"); @schedule(tile=3) x[1:2, :] = -y @ z == true; letter = iffy - format1x2;',
    "op.unknown(x) + x.op + x1.bf16 + 0x10 + _1 - 1.5.e3",
    "tensor<\n  8x // eight\n  fp32\n> = 3",
    'a = "of two\nlines 1 let"; b = 2;',
]
"""Lines in which a word, a number or a comment has a neighbour that may mislead."""
TEXTS = [*PROGRAMS, *LINES, "\n".join(OPERATIONS), "\n".join(WORDS)]
TOKENIZER = """
const fs = require("fs"), path = require("path");
const textmate = require("vscode-textmate"), engine = require("vscode-oniguruma");
const wasm = fs.readFileSync(path.join(path.dirname(require.resolve("vscode-oniguruma")), "onig.wasm")).buffer;
const onigLib = engine.loadWASM(wasm).then(() => ({
  createOnigScanner: (sources) => new engine.OnigScanner(sources),
  createOnigString: (text) => new engine.OnigString(text),
}));
const [grammar, texts] = JSON.parse(fs.readFileSync(0, "utf8"));
const loadGrammar = async () => textmate.parseRawGrammar(JSON.stringify(grammar), "grammar.json");
new textmate.Registry({ onigLib, loadGrammar }).loadGrammar(grammar.scopeName).then((loaded) => {
  console.log(JSON.stringify(texts.map((text) => {
    let stack = textmate.INITIAL;
    return text.split("\\n").flatMap((line, number) => {
      const answer = loaded.tokenizeLine(line, stack);
      stack = answer.ruleStack;
      return answer.tokens.map((token) => [
        number, token.startIndex, line.slice(token.startIndex, token.endIndex), token.scopes.at(-1),
      ]);
    });
  })));
});
"""


def tokens_of(text: str) -> Iterator[tuple[Token, str]]:
    """Yield each token and comment of the lexer, with the class that an editor has to show."""
    lexer = Lexer(text)
    tokens = [token for token in lexer if token.line and token.value]
    for comment in lexer.comments:
        yield comment, "comment"
    for index, token in enumerate(tokens):
        before = tokens[index - 2 : index] if index > 1 else tokens[:index]
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        yield token, class_of(token, [token_.value for token_ in before], following)


def class_of(token: Token, before: list[str], following: Token | None) -> str:
    """The class of a token: what its scope begins with."""
    text, word = token.value, token.value.isidentifier()
    if word and before[-1:] == ["."]:
        return "support.function" if "".join([*before, text]) in KNOWN else "entity.name.function.member"
    if word and following and following.value == "=" and (before[-1:] in MEMBERS or before[-2:] == ["@", "{"]):
        return "entity.other.attribute-name"
    if word and following and following.value == "=" and before[-1:] == [";"]:  # a layout, or an assignment
        return "entity.other.attribute-name|variable"
    if token.type in ("INT", "FLOAT"):
        return f"constant.numeric.{'float' if token.type == 'FLOAT' else '(integer|extent)'}"
    if token.type == "STRING":
        return "string"
    if text in RESERVED:
        return "keyword"
    if text in ("true", "false"):
        return "constant.language"
    if text in DTYPES:
        return "support.type.dtype"
    if token.type in ("TENSOR", "MEMREF", "FRAGMENT", "FN"):
        return "storage.type"
    if token.type == "ASSERT":
        return "keyword.control.assert"
    if token.type == "X":
        return "keyword.operator.shape|variable"
    return "variable|entity" if word else "keyword.operator|punctuation|constant.language.unknown-extent|source"


MEMBERS = (["("], [","], ["["], ["<"])
"""Before the name of an attribute."""
KNOWN = {
    f"{space}.{name}"
    for space, names in runpy.run_path(str(ROOT / "docs" / "draw_grammar.py"))["members"]().items()
    for name in names
}


@pytest.mark.parametrize("text", TEXTS)
def test_words_have_the_class_that_the_lexer_gives_them(text: str) -> None:
    scopes = {
        (piece.line + 1, piece.column + 1 + offset): piece.scope
        for piece in Walk(GRAMMAR).pieces(text)
        for offset in range(len(piece.text))
    }
    wrong = []
    for token, expected in tokens_of(text):
        lines = token.value.split("\n")
        for number, line in enumerate(lines):
            start = token.column if number == 0 else 1
            actual = {scopes[token.line + number, start + offset] for offset in range(len(line))}
            if token.type == "STRING":
                actual -= {"constant.character.escape.tessera"}
            if not all(re.match(expected, scope) for scope in actual):
                wrong.append((token.line, token.column, token.value, expected, sorted(actual)))
    assert wrong == []


def test_the_words_of_the_grammar_are_current() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "draw_grammar.py"))
    written = script["FILE"].read_text(encoding="utf-8")
    assert written == script["grammar"](), "run `python docs/draw_grammar.py`"


def test_the_walk_is_that_of_vscode_textmate() -> None:
    """The pieces of the walk here are those of the engine in VS Code."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node: apt-get install nodejs")
    looked_for = "require('vscode-textmate'); require('vscode-oniguruma')"
    if subprocess.run([node, "-e", looked_for], capture_output=True, check=False).returncode:
        install = "npm install --prefix DIR vscode-textmate vscode-oniguruma; export NODE_PATH=DIR/node_modules"
        pytest.skip(f"needs vscode-textmate: {install}")
    asked = json.dumps([GRAMMAR, TEXTS])
    answer = subprocess.run([node, "-e", TOKENIZER], input=asked, capture_output=True, text=True, check=True)
    for text, pieces in zip(TEXTS, json.loads(answer.stdout), strict=True):
        theirs = [Piece(*piece) for piece in pieces if piece[2]]
        assert _characters(Walk(GRAMMAR).pieces(text)) == _characters(theirs)


def _characters(pieces: Any) -> list[tuple[int, int, str]]:
    """The scope of each character."""
    return [(piece.line, piece.column + offset, piece.scope) for piece in pieces for offset in range(len(piece.text))]


def test_the_files_of_the_extension_exist() -> None:
    package = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    contributed = package["contributes"]
    named = [package["main"], contributed["grammars"][0]["path"], contributed["languages"][0]["configuration"]]
    assert [name for name in named if not (EXTENSION / name).is_file()] == []
    assert contributed["grammars"][0]["scopeName"] == GRAMMAR["scopeName"]
    json.loads((EXTENSION / "language-configuration.json").read_text(encoding="utf-8"))


def test_the_extension_starts_the_server(tmp_path: Path) -> None:
    """With stand-ins for the modules of the editor, the extension starts the command of its default setting."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node: apt-get install nodejs")
    package = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    command = package["contributes"]["configuration"]["properties"]["tessera.command"]["default"]
    modules = tmp_path / "node_modules"
    (modules / "vscode").mkdir(parents=True)
    (modules / "vscode-languageclient").mkdir()
    setting = f"{{ get: (name) => ({{ command: {json.dumps(command)} }})[name] }}"
    stand_in = f"exports.workspace = {{ getConfiguration: () => ({setting}) }};"
    (modules / "vscode" / "index.js").write_text(stand_in, encoding="utf-8")
    client = "exports.LanguageClient = class { constructor(...all) { this.all = all; } start() { return this.all; } };"
    (modules / "vscode-languageclient" / "node.js").write_text(client, encoding="utf-8")
    started = f"console.log(JSON.stringify(require({json.dumps(str(EXTENSION))}).activate()[2]))"
    environment = {**os.environ, "NODE_PATH": str(modules)}
    answer = subprocess.run([node, "-e", started], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) == {"command": "tessera-reference", "args": ["lsp"]}
