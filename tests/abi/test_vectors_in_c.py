"""The golden vectors of the parameter buffer, confirmed by a C compiler."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tessera_conformance.locations import vectors_directory

C_TYPES = {
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
PROGRAM = """#include <stddef.h>
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
    for each in signature.split("(", 1)[1].rstrip(")").split(","):
        words = each.replace("*", " ").split()
        found.append(("void*", words[-1]) if "*" in each else (C_TYPES[words[0]], words[1]))
    return found


def structure(signature: str) -> str:
    """A structure as long as a multiple of eight, whose complex64 members are aligned to 8 (AMB-RT-54)."""
    lines = [
        f"_Alignas(8) {type_} {name};" if "Complex" in type_ else f"{type_} {name};"
        for type_, name in members(signature)
    ]
    return f"struct {{ _Alignas(8) char start[0]; {' '.join(lines)} }}"


def output_of(folder: Path, body: list[str]) -> list[str]:
    """What a program prints."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    (folder / "program.c").write_text(PROGRAM.format(body="\n".join(body)))
    command = ["gcc", "-std=gnu11", "-w", str(folder / "program.c"), "-o", str(folder / "program")]
    subprocess.run(command, check=True)
    done = subprocess.run([str(folder / "program")], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def words(tensor: dict[str, dict[str, object]]) -> list[int]:
    """The int32 elements of a tensor message."""
    bits = str(tensor["$tensor"]["bits"])
    return [int(bits[i : i + 8], 16) for i in range(0, len(bits), 8)]


def test_offsets_and_sizes_are_those_of_a_structure(tmp_path: Path) -> None:
    body, wanted = [], []
    for case in cases("parameter_layouts"):
        signature = case["call"]["params"]["signature"]
        names = [name for _, name in members(signature)]
        offsets, sizes, ends = map(words, case["expected"]["outputs"])
        body.append(f"  {{ typedef {structure(signature)} s; s* x = 0;")
        body += [f'    printf("%zu %zu ", offsetof(s, {name}), sizeof(x->{name}));' for name in names]
        body.append('    printf("%zu\\n", sizeof(s)); }')
        assert ends[0] == offsets[-1] + sizes[-1]
        pairs = [number for pair in zip(offsets, sizes, strict=True) for number in pair]
        wanted.append(" ".join(map(str, [*pairs, ends[1]])))
    assert output_of(tmp_path, body) == wanted
    assert len(wanted) > 40


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
    """Where C has the type, it converts the value itself; the bytes of others are taken over."""
    body, wanted, converted = [], [], 0
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
        wanted.append(bits)
    assert output_of(tmp_path, body) == wanted
    assert converted > 40


def frozen_bytes(bits: str) -> str:
    """The bytes of a buffer as an initializer."""
    return ", ".join(f"0x{byte:02x}" for byte in bytes.fromhex(bits))
