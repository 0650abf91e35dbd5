"""Layouts and bytes held against a C compiler, which works out its own offsets and writes its own values."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tessera_reference.abi import Parameter, ParameterLayout, ParameterValue, layout_of, pack

C_TYPES = {
    "ptr": "void *",
    "fp8_e4m3": "uint8_t",
    "fp8_e5m2": "uint8_t",
    "fp16": "uint16_t",
    "bf16": "uint16_t",
    "fp32": "float",
    "fp64": "double",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "bool": "_Bool",
    "complex64": "float _Complex",
    "complex128": "double _Complex",
}

MEMBER = """    {c_type} {name} __attribute__((packed, aligned(sizeof({c_type}) < 8 ? sizeof({c_type}) : 8)));
"""
PROGRAM = """#include <complex.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void dump(const void *memory, size_t size) {{
    for (size_t i = 0; i < size; ++i) printf("%02x", ((const unsigned char *)memory)[i]);
    printf("\\n");
}}

{functions}
int main(void) {{
{calls}    return 0;
}}
"""
FUNCTION = """struct s{number} {{
{members}}} __attribute__((aligned(8)));

static void show{number}(void) {{
    struct s{number} s;
    memset(&s, 0, sizeof s);
{body}    printf("%zu\\n", sizeof s);
    dump(&s, sizeof s);
}}

"""


def value_and_literal(name: str, choose: random.Random) -> tuple[ParameterValue, str]:
    """A value, and how C writes it; narrow floats, which C has no types for, are left at zero."""
    match name:
        case "ptr":
            number = choose.getrandbits(64)
            return number, f"(void *)UINT64_C({number})"
        case "int8" | "int16" | "int32" | "int64":
            bits = int(name.removeprefix("int"))
            number = choose.getrandbits(bits - 1) - choose.getrandbits(1) * (1 << bits - 1)
            return number, f"(int{bits}_t)UINT64_C({number % (1 << 64)})"
        case "bool":
            truth = choose.random() < 0.5
            return truth, str(int(truth))
        case "fp32" | "fp64":
            number = choose.uniform(-1, 1) * 2.0 ** choose.randint(-160, 140)
            return number, f"({number.hex()})"
        case "complex64" | "complex128":
            value = complex(choose.uniform(-9, 9), choose.uniform(-9, 9))
            return value, f"CMPLX({value.real.hex()}, {value.imag.hex()})"
    return 0.0, "0"


def c_function(number: int, layout: ParameterLayout, literals: list[str]) -> str:
    members = "".join(MEMBER.format(c_type=C_TYPES[each.type], name=each.name) for each in layout.parameters)
    body = ""
    for parameter, literal in zip(layout.parameters, literals, strict=True):
        name = parameter.name
        body += f"    s.{name} = {literal};\n"
        body += f'    printf("%zu %zu\\n", offsetof(struct s{number}, {name}), sizeof s.{name});\n'
    return FUNCTION.format(number=number, members=members, body=body)


def run_c(source: str, folder: Path) -> list[str]:
    (folder / "layouts.c").write_text(source, encoding="utf-8")
    command = ["gcc", "-std=c11", "-O0", "-w", "-o", str(folder / "layouts"), str(folder / "layouts.c")]
    subprocess.run(command, check=True, capture_output=True)
    return subprocess.run([str(folder / "layouts")], check=True, capture_output=True, text=True).stdout.splitlines()


TYPES = st.lists(st.sampled_from(sorted(C_TYPES)), min_size=1, max_size=12)


@pytest.mark.slow
@given(st.lists(TYPES, min_size=30, max_size=60), st.integers(0, 2**32))
@settings(max_examples=12, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
def test_offsets_sizes_and_bytes_are_those_of_c(
    tmp_path_factory: pytest.TempPathFactory, signatures: list[list[str]], seed: int
) -> None:
    """Random signatures, many to a program: C computes offsetof, sizeof and the stored bytes of random values."""
    compare_with_c(signatures, random.Random(seed), tmp_path_factory.mktemp("layouts"))


def test_a_signature_of_every_type_is_laid_out_as_in_c(tmp_path: Path) -> None:
    every = sorted(C_TYPES)
    random.Random(7).shuffle(every)
    compare_with_c([every, every[::-1], ["int32"], ["int32", "complex64"]], random.Random(1), tmp_path)


def compare_with_c(signatures: list[list[str]], choose: random.Random, folder: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs a C compiler: apt-get install gcc")
    functions, expected = "", []
    for number, types in enumerate(signatures):
        layout = layout_of([Parameter(f"p{position}", name) for position, name in enumerate(types)])
        values, literals = zip(*(value_and_literal(name, choose) for name in types), strict=True)
        functions += c_function(number, layout, list(literals))
        expected += [f"{offset} {size}" for offset, size in zip(layout.offsets, layout.sizes, strict=True)]
        expected += [str(layout.size), pack(layout, values).hex()]
    calls = "".join(f"    show{number}();\n" for number in range(len(signatures)))
    assert run_c(PROGRAM.format(functions=functions, calls=calls), folder) == expected
