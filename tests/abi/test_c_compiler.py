"""tessera.h, layouts and golden vectors against a C compiler, which works out its own sizes, offsets and bytes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tessera_conformance.cases import vectors_directory
from tessera_conformance.chapters.abi.kit.c_names import PROTOTYPES
from tessera_reference.abi.status import constants, header

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
    """Compile a source that includes the header twice; run the program if asked to."""
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


def test_the_sample_structure_is_the_sample_buffer(tmp_path: Path) -> None:
    """RT-18-03: what the compiler lays out equals, byte for byte, what the suite expects of packers."""
    done = compiled(tmp_path, "c11", SAMPLE, run=True)
    assert done.returncode == 0, done.stderr


TYPES_OF_SIGNATURES = {
    "fp8_e4m3": "uint8_t",
    "fp8_e5m2": "uint8_t",
    "fp16": "uint16_t",
    "bf16": "uint16_t",
    "float": "float",
    "fp32": "float",
    "double": "double",
    "fp64": "double",
    "int8": "int8_t",
    "int16": "int16_t",
    "int": "int",
    "int32": "int32_t",
    "int64": "int64_t",
    "bool": "_Bool",
    "complex64": "float _Complex",
    "complex128": "double _Complex",
}
VECTOR_PROGRAM = """#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static void show(const void* memory, size_t size) {{
  for (size_t i = 0; i < size; ++i) printf("%02x", ((const unsigned char*)memory)[i]);
  printf("\\n");
}}
int main(void) {{
{body}
  return 0;
}}
"""


def cases(topic: str) -> list[dict[str, object]]:
    """The lines of a vector file."""
    lines = (vectors_directory() / "abi" / f"{topic}.jsonl").read_text().splitlines()[1:]
    return [json.loads(line) for line in lines]


def members(signature: str) -> list[tuple[str, str]]:
    """The type in C and the name of each parameter."""
    found = []
    for word in signature.split("(", 1)[1].rstrip(")").split(","):
        words = word.replace("*", " ").split()
        found.append(("void*", words[-1]) if "*" in word else (TYPES_OF_SIGNATURES[words[0]], words[1]))
    return found


def structure(signature: str) -> str:
    """A structure as long as a multiple of eight, whose complex64 members are aligned to 8 (AMB-RT-54)."""
    lines = [
        f"_Alignas(8) {type_} {name};" if "Complex" in type_ else f"{type_} {name};"
        for type_, name in members(signature)
    ]
    return f"struct {{ _Alignas(8) char start[0]; {' '.join(lines)} }}"


def output_of(folder: Path, body: list[str]) -> list[str]:
    """Return the lines that a program prints."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    (folder / "program.c").write_text(VECTOR_PROGRAM.format(body="\n".join(body)))
    command = ["gcc", "-std=gnu11", "-w", str(folder / "program.c"), "-o", str(folder / "program")]
    subprocess.run(command, check=True)
    done = subprocess.run([str(folder / "program")], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def words(tensor: dict[str, dict[str, object]]) -> list[int]:
    """The int32 elements of a tensor message."""
    bits = str(tensor["$tensor"]["bits"])
    return [int(bits[i : i + 8], 16) for i in range(0, len(bits), 8)]


def test_offsets_and_sizes_are_those_of_a_structure(tmp_path: Path) -> None:
    body, expected = [], []
    for case in cases("parameter_layouts"):
        signature = case["call"]["params"]["signature"]
        names = [name for _, name in members(signature)]
        offsets, sizes, ends = map(words, case["expected"]["outputs"])
        body.append(f"  {{ typedef {structure(signature)} s; s* x = 0;")
        body += [f'    printf("%zu %zu ", offsetof(s, {name}), sizeof(x->{name}));' for name in names]
        body.append('    printf("%zu\\n", sizeof(s)); }')
        assert ends[0] == offsets[-1] + sizes[-1]
        pairs = [number for pair in zip(offsets, sizes, strict=True) for number in pair]
        expected.append(" ".join(map(str, [*pairs, ends[1]])))
    assert output_of(tmp_path, body) == expected
    assert len(expected) > 40


def literal(type_: str, value: object) -> str | None:
    """A value as an initializer that C rounds itself; None for what C has no type for, or is given by its bytes."""
    if isinstance(value, dict) or type_ in ("uint8_t", "uint16_t"):
        return None
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return value.hex()
    return f"(void*)0x{value:x}ull" if type_ == "void*" else f"({type_})0x{value % (1 << 64):x}ull"


def test_bytes_are_those_of_a_structure(tmp_path: Path) -> None:
    """C converts a value itself if it has the type; the bytes of others are taken over."""
    body, expected, converted = [], [], 0
    for case in cases("parameter_buffers"):
        given = case["call"]["params"]
        bits = case["expected"]["outputs"][0]["$tensor"]["bits"]
        body.append(f"  {{ typedef {structure(given['signature'])} s; s x; memset(&x, 0, sizeof(x));")
        for (type_, name), value in zip(members(given["signature"]), given["values"], strict=True):
            number = literal(type_, value)
            converted += number is not None
            if number is not None:
                body.append(f"    x.{name} = {number};")
            elif isinstance(value, dict):
                data = ", ".join(f"0x{byte:02x}" for byte in bytes.fromhex(value["bits"]))
                body.append(f"    memcpy(&x.{name}, (const unsigned char[]){{{data}}}, sizeof(x.{name}));")
            else:
                body.append(
                    f"    memcpy(&x.{name}, (const unsigned char[]){{{frozen_bytes(bits)}}} + offsetof(s, {name}), "
                    f"sizeof(x.{name}));"
                )
        body.append("    show(&x, sizeof(x)); }")
        expected.append(bits)
    assert output_of(tmp_path, body) == expected
    assert converted > 40


def frozen_bytes(bits: str) -> str:
    """The bytes of a buffer as an initializer."""
    return ", ".join(f"0x{byte:02x}" for byte in bytes.fromhex(bits))
