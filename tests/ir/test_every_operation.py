"""Operations and programs: printed, read back, taken by mlir-opt, changed (LANG-13.1-04)."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tessera_reference.graph  # noqa: F401  # declares the operations
from tessera_reference.ir.diagnostics import Location, Rejection, Span, UnsupportedConstruct
from tessera_reference.ir.operation import OPERATIONS, AttributeValue, Block, Function, Instruction, Module
from tessera_reference.ir.text import print_module
from tessera_reference.ir.text_reader import read_modules
from tessera_reference.ir.types import Fragment, FunctionType, Layout, Memref, Mesh, Scalar, Tensor, Type, Value
from tessera_reference.ir.verifier import verify
from tessera_reference.language import compile_source
from tessera_reference.numerics.formats import DTYPES, dtype

needs_mlir = pytest.mark.skipif(
    shutil.which("mlir-opt-22") is None, reason="needs mlir-opt-22: apt-get install mlir-22-tools"
)
PROGRAMS = {
    "nested": """
module nested {
  func f(x: tensor<?x4xfp32>, n: int32, s: fp32 = -0.0) -> tensor<?x4xfp32> {
    let y: tensor<?x4xfp32> = x;
    for (i in 0 : n) {
      if (i == 2) { y = y + x; } else {
        y = y * s;
        while (i > n) { if (n == 7) { return y; } else { y = -y; } }
      }
    }
    return h(y);
  }
  func h(x: tensor<Nx4xfp32>) { return x; }
}
""",
    "words": """
module words {
  func f(x: tensor<4x4xbf16>, y: tensor<4x4xbf16; layout=blocked(bm=2, bn=2)>) @{numerics_profile=fast} {
    schedule.tile(x, m=2, n=2, pad=[1, 1]);
    assert(true, "back \\\\ quote \\" tab \\t");
    barrier("here");
    return x, y, op.sum(x, axis=0), op.const_tensor(shape=[2, 2], dtype=fp32, value=[[1, 2.5], [3, 1e-30]]);
  }
  func g(x: tensor<4x4xbf16>, y: tensor<4x4xbf16; layout=blocked(bm=2, bn=2)>) { return f(x, y); }
}
""",
    "meshes": """
module meshes {
  mesh a = mesh<axes=[dp, tp], shape=[4, 2]>;
  mesh b = mesh<axes=[dp], shape=[8]>;
  @schedule(tile=128, order=[m, n])
  kernel k(A: tensor<4xfp32>, n: int32, B: tensor<4xfp32>) {
    if (n > 0) { return; }
    B = dist.all_reduce(A, axis=dp, op="sum", mesh=a);
  }
}
""",
    "empty": "module empty {}",
}
TYPES: list[Type] = [
    *map(Scalar, DTYPES.values()),
    *(Tensor(("?", "D", 3), held) for held in DTYPES.values()),
    Tensor((0, 1), dtype("fp32"), Layout("col_major")),
    Tensor((8, 8), dtype("fp32"), Layout("blocked", (("bm", 2), ("bn", 4)))),
    Memref((128, "?"), dtype("bf16"), "shared"),
    Fragment(16, 16, 8, dtype("fp16")),
    Fragment(16, 16, 8, dtype("fp16"), Layout("col_major")),
    Mesh(("dp", "tp"), (4, 2)),
    FunctionType((), Scalar(dtype("fp32"))),
    FunctionType((FunctionType((Memref((4,), dtype("fp32")),), Mesh(("dp",), (2,))),), Tensor((4,), dtype("int8"))),
]
VALUES: list[AttributeValue] = [
    0,
    -(1 << 63),
    (1 << 64) - 1,
    -(1 << 70),
    0.1,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    float("inf"),
    float("-inf"),
    True,
    "",
    'quote " back \\ tab \t line \n nul \x00 é \u2028 \U0001f600',
    dtype("bf16"),
    (),
    ((), ((1, 2.5), ("x", False))),
]
GRAPH_OPERATIONS = sorted(name for name in OPERATIONS if name.startswith("tessera.graph."))


def mlir(text: str, *options: str) -> str:
    command = ["mlir-opt-22", "--allow-unregistered-dialect", "--mlir-print-op-generic", *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_through_mlir(modules: Sequence[Module], examples: ModuleType) -> None:
    """mlir-opt takes the export of the modules, and what it prints is read as the same modules."""
    back = read_modules(mlir("".join(print_module(module, export=True) for module in modules)))
    assert len(back) == len(modules)
    for module, found in zip(modules, back, strict=True):
        assert examples.numbered(print_module(found)) == examples.numbered(print_module(module))


def with_types() -> Module:
    """A module in which every type is that of a parameter and of a result."""
    place = Location("types.tsr", Span(1, 1, 1, 2))
    values = tuple(Value(f"x{i}", type_) for i, type_ in enumerate(TYPES))
    function = Function("f", Block(values, (), values), tuple(TYPES), place)
    return Module("types", {"f": function}, place)


def with_values() -> Module:
    """A module in which every value of an attribute is one of a directive's settings."""
    place = Location('odd "name" \\ é.tsr', Span(7, 3, 7, 4))
    directive = OPERATIONS["tessera.graph.directive"]
    settings = tuple((f"s{i}", value.name if value is dtype("bf16") else value) for i, value in enumerate(VALUES))
    made = directive(subjects=(), directive="schedule.tile", settings=settings)  # type: ignore[call-arg]
    function = Function("f", Block((), (Instruction(made, (), (), place),), ()), (), place)
    return Module("values", {"f": function}, place)


@pytest.mark.parametrize("name", GRAPH_OPERATIONS)
def test_an_operation_reads_as_it_is_printed(name: str, examples: ModuleType) -> None:
    module = examples.example(name)
    verify(module)
    for export in (False, True):
        text = print_module(module, export=export)
        assert f'"{name}"(' in text
        assert print_module(*read_modules(text), export=export) == text


@pytest.mark.parametrize("export", [False, True], ids=["home", "export"])
def test_types_and_values_read_as_they_are_printed(export: bool) -> None:
    (types,) = read_modules(print_module(with_types(), export=export))
    assert [str(value.type) for value in types.functions["f"].parameters] == [str(type_) for type_ in TYPES]
    (values,) = read_modules(print_module(with_values(), export=export))
    (directive,) = values.functions["f"].body.instructions
    expected = [(f"s{i}", value.name if value is dtype("bf16") else value) for i, value in enumerate(VALUES)]
    assert repr(directive.operation.attributes["settings"]) == repr(tuple(expected))


@needs_mlir
def test_mlir_takes_every_operation_and_gives_it_back(examples: ModuleType) -> None:
    check_through_mlir([replace(examples.example(name), name=name) for name in GRAPH_OPERATIONS], examples)


@needs_mlir
def test_mlir_takes_every_form_of_program_and_gives_it_back(examples: ModuleType) -> None:
    check_through_mlir([compile_source(source).module for source in PROGRAMS.values()], examples)


@needs_mlir
def test_mlir_takes_every_type_and_value_and_gives_it_back(examples: ModuleType) -> None:
    check_through_mlir([with_types(), with_values()], examples)


@needs_mlir
@pytest.mark.parametrize("name", PROGRAMS)
def test_places_come_back_from_mlir(name: str) -> None:
    """Every operation but a terminator is where it was."""
    module = compile_source(PROGRAMS[name], "a file.tsr").module
    exported = print_module(module, export=True)
    (back,) = read_modules(mlir(exported, "--mlir-print-debuginfo", "--mlir-print-local-scope"))
    for function, actual in zip(module.functions.values(), back.functions.values(), strict=True):
        given = [str(instruction.location) for instruction in function.body.walk()]
        assert [str(instruction.location) for instruction in actual.body.walk()] == given
        assert str(actual.location) == str(function.location)
        assert [value.name for value in actual.parameters] == [value.name for value in function.parameters]
        assert (actual.kernel, actual.defaults.keys()) == (function.kernel, function.defaults.keys())


@needs_mlir
def test_mlir_takes_a_thousand_regions_in_one_another(examples: ModuleType) -> None:
    check_through_mlir([*read_modules(nested(1000))], examples)


def nested(depth: int) -> str:
    """Branches in branches, printed as the printer does."""
    margin = ["  " * min(2 + level, 32) for level in range(depth + 1)]
    opened = [f'{margin[level]}"tessera.graph.if"(%c) ({{' for level in range(depth)]
    inner = f'{margin[depth]}"tessera.graph.yield"() : () -> ()'
    closed = []
    for level in reversed(range(depth)):
        way_out = f'{margin[level + 1]}"tessera.graph.yield"() : () -> ()'
        ending = "yield" if level else "return"
        closed += [f"{margin[level]}}}, {{", way_out, f"{margin[level]}}}) : (bool) -> ()"]
        closed.append(f'{margin[level]}"tessera.graph.{ending}"() : () -> ()')
    head = ['"builtin.module"() ({', '  "tessera.graph.func"() ({', "  ^bb0(%c: bool):"]
    tail = ['  }) {sym_name = "f", function_type = (bool) -> ()} : () -> ()', '}) {sym_name = "m"} : () -> ()', ""]
    return "\n".join([*head, *opened, inner, *closed, *tail])


TOKEN = re.compile(r'"[^"\n]*"|%[\w$.#-]+|(?:tensor|mesh)<[^>]*>|\[[^\[\]]*\]|-?[0-9][\w.+-]*|[\w.]+|->|\s+|.')
STRANGE = [
    "%x",
    "%none",
    "tensor<?x4xfp32>",
    "fp32",
    "bool",
    "-1",
    "0",
    "9" * 30,
    "1.5",
    "true",
    "[]",
    "[0]",
    '["a"]',
    '""',
]

STRANGE += [
    '"tessera.graph.matmul"',
    '"tessera.graph.for"',
    '"fp32"',
    "{",
    "}",
    "(",
    ")",
    ":",
    ",",
    "->",
    "=",
    "\\",
    '"',
]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.large_base_example, HealthCheck.too_slow])
@given(st.sampled_from(list(PROGRAMS.values())), st.data())
def test_a_text_with_a_few_changes_is_read_or_refused(source: str, data: st.DataObject) -> None:
    """Tokens are exchanged with others of the text, with strange ones, or taken away; whatever is read is sound."""
    tokens = TOKEN.findall(print_module(compile_source(source).module))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(tokens) - 1))
        other = data.draw(st.sampled_from(tokens) | st.sampled_from(STRANGE) | st.just(""))
        tokens[place] = other
    try:
        actual = read_modules("".join(tokens))
    except (Rejection, UnsupportedConstruct):
        return
    for module in actual:
        assert print_module(*read_modules(print_module(module))) == print_module(module)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from('"%abc:,=()[]{}<>-0123x./\\\n#^@!?é\x00'), max_size=60) | st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_modules(text)
    except (Rejection, UnsupportedConstruct):
        return
