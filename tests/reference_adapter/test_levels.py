"""The language methods at each level of IR: what they answer, and what they refuse."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from operator import mul
from typing import Any

import pytest

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.chapters.ir.kit import kernel_texts
from tessera_conformance.dsl import tensor_of
from tessera_conformance.schemas import first_problem
from tessera_conformance.tensors import Tensor, to_wire
from tessera_reference import adapter
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.ir.diagnostics import MissingTool
from tessera_reference.target_ir.emission import host, machine_code

PRODUCT = """module m {
  func f(A: tensor<20x24xbf16>, B: tensor<24x18xbf16>) -> tensor<20x18xbf16> { return op.relu(A @ B); }
}"""
OPEN = "module m { func f(A: tensor<MxKxfp32>) -> tensor<MxKxfp32> { return A + A; } }"
CHAIN = {
    "source": "module m { func f(X: tensor<2xfp32>) -> tensor<2xfp32> { return -X; } }",
    "function": "f",
    "inputs": {"X": Tensor.from_words("fp32", (2,), [0, 1])},
}
SMALL = {"tile": [16, 16, 16], "depth": 2}
LEVELS = ("graph", "schedule", "tile", "target")


@pytest.fixture
def reference() -> ReferenceAdapter:
    return make()


def small(row: int, column: int) -> int:
    """A whole number from -2 to 2."""
    return (3 * row + 5 * column + row * column) % 5 - 2


A = [[small(row, k) for k in range(24)] for row in range(20)]
B = [[small(column, k + 1) for column in range(18)] for k in range(24)]
INPUTS = {"A": tensor_of("bf16", A), "B": tensor_of("bf16", B)}
RESULT = tensor_of("bf16", [[max(0, sum(map(mul, row, column))) for column in zip(*B, strict=True)] for row in A])
"""Sums of at most 96 are exact in bf16."""


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "gfx90a", "gfx942"])
def test_every_level_gives_the_same_bits(reference: ReferenceAdapter, target: str) -> None:
    call = {"source": PRODUCT, "function": "f", "inputs": INPUTS, "target": target, "schedule": SMALL}
    for level in LEVELS:
        assert reference.language_execute(**call, at=level)["outputs"] == [RESULT]


def test_machine_code_needs_llvm(reference: ReferenceAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"source": PRODUCT, "function": "f", "inputs": INPUTS, "at": "native"}
    emission = {"source": PRODUCT, "to": "ptx"}
    if find_spec("llvmlite") is not None:
        assert reference.language_execute(**call)["outputs"] == [RESULT]
        assert ".visible .entry tss_kernel_f_0" in reference.language_lower(**emission)["text"]

    def binding() -> None:
        raise MissingTool("llvmlite", "pip install it")

    monkeypatch.setattr(machine_code, "binding", binding)
    monkeypatch.setattr(host, "binding", binding)
    monkeypatch.setattr(host, "_ENGINES", {})
    for method, parameters in (("language_execute", CHAIN | {"at": "native"}), ("language_lower", emission)):
        with pytest.raises(NotSupported, match="llvmlite is not installed: pip install it"):
            getattr(reference, method)(**parameters)


@pytest.mark.parametrize(
    ("package", "features"),
    [("llvmlite", {"native", "target-amdgcn", "target-nvptx"}), ("cryptography", {"module-signing"})],
)
def test_what_it_claims_depends_on_what_is_installed(
    reference: ReferenceAdapter, monkeypatch: pytest.MonkeyPatch, package: str, features: set[str]
) -> None:
    monkeypatch.setattr(adapter, "find_spec", lambda name: None)
    without = set(reference.hello()["capabilities"])
    monkeypatch.setattr(adapter, "find_spec", lambda name: name if name == package else None)
    assert set(reference.hello()["capabilities"]) - without == features


@pytest.mark.parametrize("to", ["ptx", "amdgcn"])
def test_a_text_of_another_vendor_is_refused(reference: ReferenceAdapter, to: str) -> None:
    target = {"ptx": "gfx90a", "amdgcn": "sm_80"}[to]
    with pytest.raises(Refusal, match=f"{target} takes no {to}") as refused:
        reference.language_lower(source=PRODUCT, to=to, target=target)
    assert (refused.value.outcome.code, refused.value.outcome.phase) == ("TESS_ERR_INVALID_VALUE", "call")


def test_llvm_ir_has_a_text_and_no_functions(reference: ReferenceAdapter) -> None:
    answer = reference.language_lower(source=PRODUCT, to="llvm", target="gfx942")
    assert answer["functions"] == []
    assert "define amdgpu_kernel void @tss_kernel_f_0(" in answer["text"]
    assert first_problem("tessera:protocol/language", "lower.result", answer) is None


def test_a_program_of_open_shapes_is_specialized_to_its_inputs(reference: ReferenceAdapter) -> None:
    given = {"A": Tensor.from_words("fp32", (1, 3), [0x3F800000, 0x40000000, 0xBF800000])}
    for level in LEVELS:
        outputs = reference.language_execute(source=OPEN, function="f", inputs=given, at=level)["outputs"]
        assert outputs == [Tensor.from_words("fp32", (1, 3), [0x40000000, 0x40800000, 0xC0000000])]


def test_what_is_lowered_to_tiles_is_told_as_functions_and_kernels(reference: ReferenceAdapter) -> None:
    answer = reference.language_lower(source=PRODUCT, to="tile", schedule=SMALL)
    assert first_problem("tessera:protocol/language", "lower.result", to_wire(answer)) is None
    host = [each for each in answer["functions"] if each["kind"] == "func"]
    kernels = [each for each in answer["functions"] if each["kind"] == "kernel"]
    assert [each["name"] for each in host] == ["f"]
    launched = [each["attributes"]["kernel"] for each in host[0]["operations"] if each["name"] == "tessera.tile.launch"]
    assert launched == [each["name"] for each in kernels]
    entry = kernels[0]["attributes"]
    assert (len(entry["grid"]), len(entry["block"]), entry["target"]) == (3, 3, "sm_90")
    assert entry["smem_bytes"] > 0
    assert kernels[0]["arguments"][0] == "memref<20x24xbf16>[addrspace=global]"
    assert "tessera.tile.mma.sync" in [each["name"] for each in kernels[0]["operations"]]


def test_the_text_of_a_level_is_verified_and_executed(reference: ReferenceAdapter) -> None:
    for level in LEVELS:
        text = reference.language_lower(source=PRODUCT, to=level, schedule=SMALL)["text"]
        assert reference.language_verify_ir(text=text, at=level) == {"warnings": []}
        outputs = reference.language_execute_ir(text=text, function="f", inputs=INPUTS, at=level)["outputs"]
        assert outputs == [RESULT]


def doubling() -> kernel_texts.KernelText:
    """y = x + x, and n into the last element, which is 32 places further."""
    kernel = kernel_texts.KernelText(
        {"x": kernel_texts.buffer("int32", 32), "y": kernel_texts.buffer("int32", 33), "n": "int32"}
    )
    lane = kernel.index("thread_id")
    value = kernel.load(kernel["x"], lane)
    kernel.store(kernel.compute("add", value, value), kernel["y"], lane)
    first, last = kernel.constant(0), kernel.constant(32)
    kernel.branch(kernel.compute("equal", lane, first), lambda: kernel.store(kernel["n"], kernel["y"], last) or ())
    return kernel


X = Tensor.from_words("int32", (32,), range(32))
Y = Tensor.from_words("int32", (33,), [*range(0, 64, 2), 7])
N = Tensor.from_words("int32", (), [7])


def test_a_kernel_leaves_its_buffers(reference: ReferenceAdapter) -> None:
    text, zeros = doubling().module, Tensor.from_words("int32", (33,), [0] * 33)
    for inputs in ({"x": X, "y": zeros, "n": N}, {"x": X, "n": N}):
        answer = reference.language_execute_ir(text=text, function="tss_kernel_k", inputs=inputs, at="tile")
        assert answer == {"outputs": [X, Y]}
        assert first_problem("tessera:protocol/language", "execute_ir.result", to_wire(answer)) is None


SOURCE = {"source": PRODUCT}
EXECUTE = {"source": PRODUCT, "function": "f", "inputs": INPUTS}
KERNEL = {"text": doubling().module, "at": "tile"}

REFUSED: list[tuple[str, Mapping[str, Any], str]] = [
    (
        "language_lower",
        SOURCE | {"to": "tiles"},
        "to is 'tiles', allowed is one of graph, schedule, tile, target, llvm",
    ),
    ("language_lower", SOURCE | {"to": "native"}, "to is 'native', allowed is one of graph"),
    ("language_lower", SOURCE | {"to": "tile", "target": "sm_9"}, "target is 'sm_9', allowed is one of sm_80, sm_90"),
    ("language_lower", SOURCE | {"to": "tile", "target": 90}, "target is 90, allowed is one of sm_80"),
    ("language_lower", SOURCE | {"to": "tile", "target": ["sm_90"]}, "target is ['sm_90']"),
    *[
        ("language_execute", EXECUTE | {"at": "tile", "schedule": given}, message)
        for given, message in [
            (5, "schedule is 5, allowed is an object"),
            ([], "schedule is [], allowed is an object"),
            ({"tiles": [1, 1, 1]}, "schedule, a name in it, is 'tiles', allowed is one of tile, depth, prefetch, fuse"),
            ({"tile": 16}, "schedule.tile is 16, allowed is a list of m, n and k"),
            ({"tile": [16, 16]}, "schedule.tile is [16, 16], allowed is a list of m, n and k"),
            ({"tile": [16, 16, 0]}, "schedule.tile[2] is 0, allowed is a whole number from 1"),
            ({"tile": [16, 16, 1 << 40]}, f"schedule.tile[2] is {1 << 40}"),
            ({"tile": [True, 16, 16]}, "schedule.tile[0] is True"),
            ({"depth": 0}, "schedule.depth is 0, allowed is a whole number from 1"),
            ({"depth": 2.0}, "schedule.depth is 2.0"),
            ({"prefetch": "local"}, "schedule.prefetch is 'local', allowed is one of shared, global, none"),
            ({"fuse": 1}, "schedule.fuse is 1, allowed is true or false"),
        ]
    ],
    (
        "language_execute",
        EXECUTE | {"at": "ptx"},
        "at is 'ptx', allowed is one of graph, schedule, tile, target, native",
    ),
    ("language_execute", EXECUTE | {"at": "tile", "target": "sm_70"}, "target is 'sm_70'"),
    ("language_execute", EXECUTE | {"at": None}, "at is None"),
    (
        "language_verify_ir",
        KERNEL | {"at": "native"},
        "at is 'native', allowed is one of graph, schedule, tile, target",
    ),
    ("language_verify_ir", KERNEL | {"target": "tpu"}, "target is 'tpu'"),
    ("language_execute_ir", {}, "language.execute_ir: text is None, allowed is a value"),
    ("language_execute_ir", KERNEL | {"function": "k"}, "inputs is None, allowed is a value"),
    ("language_execute_ir", {"text": "", "function": "k", "inputs": {}}, "at is None, allowed is a value"),
    ("language_execute_ir", KERNEL | {"function": "k", "inputs": {"x": 5}}, "inputs.x is 5, allowed is a tensor"),
]


@pytest.mark.parametrize(("method", "parameters", "message"), REFUSED)
def test_malformed_parameters_are_refused_by_name(
    reference: ReferenceAdapter, method: str, parameters: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(Refusal) as refused:
        getattr(reference, method)(**parameters)
    assert (refused.value.outcome.code, refused.value.outcome.phase) == ("TESS_ERR_INVALID_VALUE", "call")
    assert message in refused.value.outcome.message


@pytest.mark.parametrize(
    ("function", "inputs", "message"),
    [
        ("k", {}, "no function 'k'; there is m.tss_kernel_k"),
        ("tss_kernel_k", {"x": X}, "input n is missing: expected int32"),
        (
            "tss_kernel_k",
            {"x": Y, "n": N},
            "input x: expected memref<32xint32>[addrspace=global], given tensor<33xint32>",
        ),
        ("tss_kernel_k", {"x": X, "n": X}, "input n: expected int32, given tensor<32xint32>"),
        ("tss_kernel_k", {"x": X, "n": N, "z": X}, "input z is not a parameter; @tss_kernel_k takes x, y, n"),
    ],
)
def test_inputs_that_do_not_fit_a_kernel_are_refused(
    reference: ReferenceAdapter, function: str, inputs: Mapping[str, Tensor], message: str
) -> None:
    with pytest.raises(Refusal) as refused:
        reference.language_execute_ir(**KERNEL, function=function, inputs=inputs)
    assert (refused.value.outcome.code, refused.value.outcome.phase) == ("types", "call")
    assert message in refused.value.outcome.message


def test_a_buffer_that_is_left_out_is_uninitialised(reference: ReferenceAdapter) -> None:
    with pytest.raises(Refusal, match=r"reads %x\[0\], which nothing has written") as refused:
        reference.language_execute_ir(**KERNEL, function="tss_kernel_k", inputs={"n": N})
    assert (refused.value.outcome.code, refused.value.outcome.phase) == ("tile", "execute")


@pytest.mark.parametrize(("level", "other"), [("tile", "graph"), ("tile", "schedule"), ("tile", "target")])
def test_a_text_of_another_level_is_refused(reference: ReferenceAdapter, level: str, other: str) -> None:
    text = reference.language_lower(source=PRODUCT, to=level)["text"]
    with pytest.raises(Refusal, match=r"is a kernel of Tile IR|is no operation of this level") as refused:
        reference.language_verify_ir(text=text, at=other)
    assert (refused.value.outcome.code, refused.value.outcome.phase) == ("types", "verify")


def test_schedule_operations_do_not_stand_in_graph_ir(reference: ReferenceAdapter) -> None:
    text = reference.language_lower(source=PRODUCT, to="schedule")["text"]
    with pytest.raises(Refusal, match=r"tessera.schedule.\w+ is no operation of this level"):
        reference.language_verify_ir(text=text)


@pytest.mark.parametrize("level", ["tile", "target", "llvm", "ptx"])
def test_a_program_of_open_shapes_has_no_kernels(reference: ReferenceAdapter, level: str) -> None:
    with pytest.raises(Refusal, match="@f has extents that are not known") as refused:
        reference.language_lower(source=OPEN, to=level)
    outcome = refused.value.outcome
    assert (outcome.code, outcome.phase) == ("shapes", "lower")
    assert "give inputs" in (outcome.diagnostics[0].remedy or "")
    assert reference.language_lower(source=OPEN, to="schedule")["functions"]


def test_a_kernel_that_goes_out_of_bounds_is_told_by_operation_and_lane(reference: ReferenceAdapter) -> None:
    kernel = kernel_texts.KernelText({"x": kernel_texts.buffer("int32", 31), "y": kernel_texts.buffer("int32", 32)})
    lane = kernel.index("thread_id")
    kernel.store(kernel.load(kernel["x"], lane), kernel["y"], lane)
    given = {"x": Tensor.from_words("int32", (31,), range(31))}
    with pytest.raises(Refusal) as refused:
        reference.language_execute_ir(text=kernel.module, function="tss_kernel_k", inputs=given, at="tile")
    outcome = refused.value.outcome
    assert (outcome.code, outcome.phase, outcome.diagnostics[0].line) == (
        "tile",
        "execute",
        kernel_texts.FIRST_OPERATION + 1,
    )
    assert "(31, 0, 0)" in outcome.message


@pytest.mark.parametrize("at", ["schedule", "tile", "target"])
def test_programs_on_a_mesh_run_at_every_level(reference: ReferenceAdapter, at: str) -> None:
    source = """module m {
      mesh g = mesh<axes=[dp], shape=[2]>;
      func f(X: tensor<2xfp32>) -> tensor<2xfp32> { return dist.all_reduce(X + X, axis=dp, op="sum"); }
    }"""
    given = {"X": Tensor.from_words("fp32", (2,), [0x3F800000, 0x40000000])}
    outputs = reference.language_execute(source=source, function="f", inputs=given, at=at)["outputs"]
    assert outputs == [Tensor.from_words("fp32", (2,), [0x40800000, 0x41000000])]
