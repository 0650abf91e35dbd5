"""Tools of others that read the texts of the levels: mlir-opt, xDSL, ptxas and LLVM.

    python -m conformance.adapters.text_readers reports/implementations mlir_opt xdsl ptxas llvm

A tool decides what it reads and what it refuses, and nothing else. What a compiler prints must be read, a forgery must
be refused. Each tool that is installed gets `NAME.json`; those named are asked, or all.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.adapters.texts import LLVM, MLIR, PTX, Forgery, Text, forged, texts

IR = ("graph", "schedule", "tile", "target")
EVERY = 16
"""One program in this many is taken from the corpus."""


@dataclass(frozen=True)
class Reader:
    """A tool: the levels that it reads, how to have it, and what returns why it refuses a text, or nothing."""

    levels: Sequence[str]
    install: str
    version: Callable[[], str | None]
    refusal: Callable[[str, str], str]
    forgeries: Mapping[str, Forgery] = field(default_factory=dict)


def _first_line(*command: str) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    return next((line.strip() for line in lines if "version" in line.lower() or "release" in line.lower()), "unknown")


def _package(name: str) -> str | None:
    return importlib.metadata.version(name) if importlib.util.find_spec(name) else None


def _by_mlir_opt(text: str, target: str) -> str:
    command = ["mlir-opt-22", "--allow-unregistered-dialect", "-o", "/dev/null"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)
    return "" if done.returncode == 0 else _reason(done.stderr, done.returncode)


def _by_ptxas(text: str, target: str) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        command = ["ptxas", f"-arch={target}", "-c", "-o", "/dev/null", file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return "" if done.returncode == 0 else _reason(done.stdout + done.stderr, done.returncode)


def _by_xdsl(text: str, target: str) -> str:
    from xdsl.context import Context
    from xdsl.dialects.builtin import Builtin
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    try:
        Parser(context, text).parse_module().verify()
    except (ParseError, VerifyException, DiagnosticException) as refusal:
        return _reason(str(refusal), 1)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _by_llvm(text: str, target: str) -> str:
    from llvmlite import binding

    try:
        binding.parse_assembly(text).verify()
    except RuntimeError as refusal:
        return _reason(str(refusal), 1)
    return ""


def _reason(output: str, code: int) -> str:
    """The line that says why, without places."""
    lines = [line.strip() for line in output.splitlines() if "error" in line.lower()] or output.strip().splitlines()
    return lines[0].partition("error: ")[2] or lines[0] if lines else f"exit code {code}"


READERS: Mapping[str, Reader] = {
    "mlir_opt": Reader(
        IR, "apt-get install mlir-22-tools", lambda: _first_line("mlir-opt-22", "--version"), _by_mlir_opt, MLIR
    ),
    "xdsl": Reader(IR, "pip install 'tessera-conformance[xdsl]'", lambda: _package("xdsl"), _by_xdsl, MLIR),
    "ptxas": Reader(
        ("ptx",), "it is part of the CUDA toolkit", lambda: _first_line("ptxas", "--version"), _by_ptxas, PTX
    ),
    "llvm": Reader(("llvm",), "pip install 'tessera-conformance[llvm]'", lambda: _package("llvmlite"), _by_llvm, LLVM),
}


def judged(reader: Reader, corpus: Sequence[Text]) -> dict[str, Any]:
    """The texts that a tool reads, by level, and the forgeries that it refuses, by mistake."""
    levels: dict[str, dict[str, Any]] = {}
    mistakes: dict[str, dict[str, Any]] = {}
    for text in corpus:
        row = levels.setdefault(text.level, {"read": 0, "refused": {}})
        refusal = reader.refusal(text.text, text.target)
        row["read"] += not refusal
        if refusal:
            row["refused"].setdefault(refusal, []).append(f"{text.program} for {text.target}")
            continue
        for mistake, other in forged(text.text, reader.forgeries):
            row = mistakes.setdefault(mistake, {"refused": 0, "read": []})
            is_refused = bool(reader.refusal(other, text.target))
            row["refused"] += is_refused
            row["read"] += [] if is_refused else [f"{text.program}, {text.level} for {text.target}"]
    return {"texts": levels, "forgeries": mistakes}


def main() -> int:
    """Ask the tools named, or all, and write what each reads."""
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(READERS)
    versions = {name: READERS[name].version() for name in names}
    for name in [name for name in names if versions[name] is None]:
        print(f"{name} is not installed: {READERS[name].install}", file=sys.stderr)
    names = [name for name in names if versions[name] is not None]
    corpus = list(texts(sorted({level for name in names for level in READERS[name].levels}), EVERY))
    for name in names:
        reader = READERS[name]
        result = judged(reader, [text for text in corpus if text.level in reader.levels])
        whole = {"implementation": name, "version": versions[name], **result}
        (folder / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        print(name, {level: (row["read"], len(row["refused"])) for level, row in result["texts"].items()})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
