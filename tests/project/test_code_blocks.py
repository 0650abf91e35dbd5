"""Code blocks of README and docs: commands parse, Python runs with stand-ins for the reader's parts, data is accepted.

`ELSEWHERE` names the blocks that another test runs, or that no test can run, with the reason.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tessera_conformance import cli
from tessera_conformance.operations.table_adapter import adapter_of
from tessera_conformance.options import add_options
from tessera_conformance.strength.mutants import read_equivalents
from tessera_conformance.tensors import Tensor, from_wire
from tessera_conformance.transports.cabi.options import read_description as read_library
from tessera_conformance.transports.hostio import read_description as read_endpoint
from tessera_conformance.verdicts import Deviations
from tessera_reference.abi.status import Failure, Status
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.commands import register_all
from tessera_reference.numerics import reductions
from tessera_reference.wsp.package import load

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = {
    f"{page.stem}-{number}": (language, text)
    for page in PAGES
    for number, (language, text) in enumerate(
        re.findall(r"^```([a-z]+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE), 1
    )
}
ELSEWHERE = {
    "python-1": "tests/binding/test_contexts.py runs the listing with a module of its own",
    "c_library-3": "tests/c_library runs CMake where it is installed",
    "editors-3": "a configuration of Neovim, which is read by Neovim alone",
    "continuous_integration-1": "tests/packaging/test_action.py judges the inputs of the action",
    "host_io-1": "frames of a run, shortened for the page: tests/host_io/test_bridge.py judges them",
}
"""Blocks that are not run here."""
OTHER_PROGRAMS = tuple("python3 pip export gcc cc rustc CGO_LDFLAGS_ALLOW= node cd npm npx code podman dask".split())
"""Programs whose lines are not the project's to parse."""

COMMANDS = [name for name, (language, _) in BLOCKS.items() if language == "sh" and not name.startswith("first-hour")]


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_have_these_arguments(name: str) -> None:
    """Each line names a command that accepts its options; `test_documentation` runs the blocks of first-hour."""
    for line in BLOCKS[name][1].replace("\\\n", " ").splitlines():
        words = shlex.split(re.sub(r"^\w+\$ ", "", line), comments=True)
        if not words or words[0].startswith(OTHER_PROGRAMS):
            continue
        program, *arguments = words
        if program == "tessera-reference":
            parser = argparse.ArgumentParser()
            register_all(parser.add_subparsers(), arguments)
            parser.parse_args(arguments)
        else:
            assert program == "tessera-conformance", line
            parser, subparsers = cli._parser(arguments[:1])
            rest = parser.parse_known_args(arguments)[1]
            suite = argparse.ArgumentParser()
            suite.add_argument("-k")
            if subparsers.choices[arguments[0]].get_default("takes_rest"):
                add_options(suite.add_argument)
            suite.parse_args(rest)


def reference() -> Any:
    """Return an adapter of the reference, which has a method for each of the protocol."""
    return make()


class AcmeProgram:
    """A compiled program of the stand-in compiler, which is the reference."""

    def __init__(self, source: str) -> None:
        self._source = source

    def run(self, function: str, inputs: Mapping[str, tuple[str, Any, bytes]]) -> list[tuple[str, Any, bytes]]:
        """Return dtype, shape and bytes of each output."""
        operands = {name: Tensor(dtype, shape, data) for name, (dtype, shape, data) in inputs.items()}
        answer = reference().language_execute(source=self._source, function=function, inputs=operands)
        return [(output.dtype, output.shape, output.data) for output in answer["outputs"]]


def acme_module() -> ModuleType:
    """Return a module `acme` with a compiler and three operations."""
    acme = ModuleType("acme")
    vars(acme).update(__version__="2.1", compile=AcmeProgram, add=np.add, softmax=softmax, batch_norm=batch_norm)
    return acme


def softmax(x: np.ndarray, dim: int) -> np.ndarray:
    """Return the softmax along an axis."""
    powers = np.exp(x - np.max(x, axis=dim, keepdims=True))
    return np.asarray(powers / np.sum(powers, axis=dim, keepdims=True))


def batch_norm(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three results, as the page says."""
    return x, x, x


def is_right_readme(names: Mapping[str, Any]) -> bool:
    source = "module m { func f(x: tensor<2xint32>) -> tensor<2xint32> { return x + x; } }"
    operand = Tensor("int32", (2,), bytes([1, 0, 0, 0, 2, 0, 0, 0]))
    answer = names["make"]().language_execute(source=source, function="f", inputs={"x": operand})
    return bool(answer["outputs"] == [Tensor("int32", (2,), bytes([2, 0, 0, 0, 4, 0, 0, 0]))])


def is_right_table(names: Mapping[str, Any]) -> bool:
    module = ModuleType("my_adapter")
    vars(module).update(names)
    return bool(adapter_of(module, "TABLE").hello()["implementation"] == {"name": "acme", "version": "2.1"})


def accepts(source: str) -> bool:
    """True if the front end of the reference accepts the source."""
    return not reference().language_verify(source=source).get("rejected", False)


OURS = {"ReferenceAdapter": ReferenceAdapter, "make": make}
PYTHON: Mapping[str, tuple[Mapping[str, Any], Callable[[Mapping[str, Any]], bool]]] = {
    "README-3": ({"acme": acme_module()}, is_right_readme),
    "adapters-1": ({}, is_right_table),
    "fuzzing-1": (
        {"our_compiler": SimpleNamespace(accepts=accepts)},
        lambda names: names["test_our_front_end_accepts_legal_programs"]() is None,
    ),
    "runtime-1": ({}, lambda names: names["status"] is Status.TESS_OK),
    "strength-1": (
        {**OURS, "arithmetic": reductions, "over_the_first_axis": softmax},
        lambda names: (
            issubclass(names["ModuleIsAName"], ReferenceAdapter) and names["first_axis"].clause == "LANG-05.2-03"
        ),
    ),
    "strength-2": (
        {**OURS, "Failure": Failure, "function_alone": str},
        lambda names: issubclass(names["OtherDevices"], ReferenceAdapter) and names["terse"].freedom == "AMB-RT-82",
    ),
    "wsp-3": (
        {},
        lambda names: [process.name for process in load(names["package"]).csp.processes] == ["producer", "consumer"],
    ),
}
"""Stand-ins for what the reader has, by block, and what must hold of the names that the block leaves."""


@pytest.mark.parametrize("name", PYTHON)
def test_python_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins, is_right = PYTHON[name]
    monkeypatch.setitem(sys.modules, "acme", acme_module())
    names = {**stand_ins, "__name__": "block"}
    exec(compile(BLOCKS[name][1], name, "exec", dont_inherit=True), names)
    assert is_right(names)


READERS: Mapping[str, Callable[[Path], object]] = {
    "cabi-2": lambda path: read_library(str(path)),
    "host_io-2": lambda path: read_endpoint(str(path)),
    "verdicts-1": Deviations.read,
    "strength-3": read_equivalents,
    "editors-4": lambda path: tomllib.loads(path.read_text(encoding="utf-8")),
    "probing-1": lambda path: tomllib.loads(path.read_text(encoding="utf-8")),
    "protocol-1": lambda path: from_wire(json.loads(path.read_text(encoding="utf-8"))),
    "wsp-1": lambda path: reference().wsp_execute(program=json.loads(path.read_text(encoding="utf-8"))),
    "wsp-2": lambda path: reference().wsp_compile(
        program=json.loads(path.read_text(encoding="utf-8")), target="cpu_sim"
    ),
}
"""The reader of each block of data: of the project's own files that of the command that reads them."""


@pytest.mark.parametrize("name", READERS)
def test_data_is_accepted(name: str, tmp_path: Path) -> None:
    path = tmp_path / "block.toml"
    path.write_text(BLOCKS[name][1], encoding="utf-8")
    assert READERS[name](path)


PACKAGES = {
    r"--impl=cabi:|smoke cabi:|build-c-library": "cffi",
    r"--executor=dask:|^dask ": "distributed",
    r"--sign\b|--signed-by\b|--key\b": "cryptography",
    r"--to ptx": "llvmlite",
    r"tessera-reference lsp": "pygls",
    r"tessera-\w+ completion": "shtab",
}
"""Packages that a plain installation lacks, by the commands that need them."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_name_the_extra_of_their_commands(page: Path) -> None:
    """A page tells its reader to install what its commands need; an image for podman has every extra."""
    text = page.read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)).replace("\\\n", " ")
    commands = [line for line in blocks.splitlines() if not line.startswith("podman")]
    commands += re.findall(r"`(tessera-[a-z]+ [^`]+)`", text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: needed for name, needed in project["optional-dependencies"].items() if name != "test"}
    for pattern, package in PACKAGES.items():
        needing = [command for command in commands if re.search(pattern, command)]
        names = [name for name, needed in extras.items() if any(re.match(rf"{package}\b", entry) for entry in needed)]
        choice = "|".join(names)
        named = rf"\[[a-z,-]*\b({choice})\b[a-z,-]*\]|extra `?({choice})\b"
        assert not needing or re.search(named, text), f"{needing[0]}: name one of the extras {', '.join(names)}"


def test_every_block_is_judged_or_stands_in_the_table() -> None:
    assert {language for language, _ in BLOCKS.values()} == {*"sh python json toml yaml text lua cmake".split()}
