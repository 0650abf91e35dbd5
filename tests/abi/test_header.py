"""tessera.h as C compilers read it: C11 and C++17, sizes and offsets, enumerators, and agreement with our constants."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tessera_conformance.chapters.abi.kit.c_names import PROTOTYPES
from tessera_reference.abi.header import header
from tessera_reference.abi.status import constants

SIZES = {
    "tessStatus_t": 4,
    "tessMemKind": 4,
    "tessCopyKind": 4,
    "tessCollOp": 4,
    "tessMeshAxes": 16,
    "tessLaunchConfig": 40,
    "tessNumericsPolicy": 16,
    "tessContext_t": 8,
    "tessMesh_t": 8,
    "tessStream_t": 8,
    "tessEvent_t": 8,
    "tessModule_t": 8,
    "tessKernel_t": 8,
    "tessProfiler_t": 8,
}
"""On machines with 64-bit pointers."""

OFFSETS = {
    "tessMeshAxes": {"tp": 0, "pp": 4, "dp": 8, "ep": 12},
    "tessLaunchConfig": {"grid": 0, "block": 12, "shmemBytes": 24, "flags": 32},
    "tessNumericsPolicy": {"stableReductions": 0, "deterministic": 4, "rngStateless": 8, "allowFastMath": 12},
}

SAMPLE = """
#include <string.h>
int main(void) {
  struct { void* Q; void* K; void* V; void* O; int B, H, L, D; float scale; } args;
  memset(&args, 0, sizeof(args));
  args.Q = (void*)0x1000; args.K = (void*)0x2000; args.V = (void*)0x3000; args.O = (void*)0x4000;
  args.B = 2; args.H = 3; args.L = 4; args.D = 5; args.scale = 1.0f;
  const unsigned char wanted[] = {
      0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0x30, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0,
      2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0};
  return sizeof(args) != 0x38 || memcmp(&args, wanted, sizeof(args)) != 0;
}
"""

LANGUAGES = {"c11": ("gcc", "-std=c11", "c"), "c++17": ("g++", "-std=c++17", "cpp")}


def assertions() -> list[str]:
    """Static assertions of everything that has a number."""
    sizes = [f'static_assert(sizeof({name}) == {size}, "{name}");' for name, size in SIZES.items()]
    offsets = [
        f'static_assert(offsetof({name}, {member}) == {offset}, "{name}.{member}");'
        for name, members in OFFSETS.items()
        for member, offset in members.items()
    ]
    values = [f'static_assert((int){name} == {value}, "{name}");' for name, value in constants().items()]
    return [*sizes, *offsets, *values]


def compiled(folder: Path, language: str, *lines: str, run: bool = False) -> subprocess.CompletedProcess[str]:
    """What the compiler, or the program, says of a source that includes the header twice."""
    compiler, standard, suffix = LANGUAGES[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (folder / "tessera.h").write_text(header())
    source = folder / f"program.{suffix}"
    includes = ["#include <assert.h>", '#include "tessera.h"', '#include "tessera.h"']
    source.write_text("\n".join([*includes, *lines, ""]))
    command = [compiler, standard, "-Wall", "-Wextra", "-Wpedantic", "-Wstrict-prototypes", "-Werror"]
    if language != "c11":
        command.remove("-Wstrict-prototypes")
    target = folder / "program"
    options = ["-o", str(target)] if run else ["-c", "-o", str(folder / "program.o")]
    done = subprocess.run([*command, str(source), *options], capture_output=True, text=True, check=False)
    return (
        subprocess.run([str(target)], capture_output=True, text=True, check=False)
        if run and not done.returncode
        else done
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_sizes_offsets_and_values(tmp_path: Path, language: str) -> None:
    done = compiled(tmp_path, language, *assertions())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_wrong_assertion_is_noticed(tmp_path: Path, language: str) -> None:
    done = compiled(tmp_path, language, 'static_assert(sizeof(tessLaunchConfig) == 36, "wrong");')
    assert "wrong" in done.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_prototypes_are_those_of_the_specification(tmp_path: Path, language: str) -> None:
    """A compiler refuses to declare a function twice unless both prototypes are the same."""
    lines = [f"tessStatus_t {name}{parameters};" for name, (_, parameters) in PROTOTYPES.items()]
    opening, closing = ('extern "C" {', "}") if language != "c11" else ("", "")
    done = compiled(tmp_path, language, opening, *lines, closing)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_another_prototype_is_noticed(tmp_path: Path, language: str) -> None:
    opening, closing = ('extern "C" {', "}") if language != "c11" else ("", "")
    done = compiled(tmp_path, language, opening, "int tessInit(tessContext_t*, int);", closing)
    assert "tessInit" in done.stderr


def test_every_function_of_the_specification_is_there() -> None:
    text = header()
    assert len(PROTOTYPES) == 29
    assert [name for name in PROTOTYPES if f"tessStatus_t {name}(" not in text] == []


def test_the_sample_structure_is_the_sample_buffer(tmp_path: Path) -> None:
    """RT-18-03: what the compiler lays out equals, byte for byte, what the suite expects of packers."""
    done = compiled(tmp_path, "c11", SAMPLE, run=True)
    assert done.returncode == 0, done.stderr
