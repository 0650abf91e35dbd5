"""Images of programs: sections, hash, targets, the table of kernels, explanations, and the same bytes always."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from tessera_reference.abi.fatbin import CollectivePlan, public_key, read, verify
from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.abi.status import Failure, Status
from tessera_reference.compilation import images
from tessera_reference.compilation.executables import executables_of, explain_launch, reduction_orders
from tessera_reference.compilation.images import compile_module, explanation_json, explanation_text, explanation_value
from tessera_reference.ir.diagnostics import MissingTool, Rejection
from tessera_reference.levels.execution import Options
from tessera_reference.numerics.trees import FOLD, PAIRWISE

ADD = "module m { kernel add(A: tensor<4x8xfp32>, B: tensor<4x8xfp32>, C: tensor<4x8xfp32>) { C = A + B; } }"
OPEN = "module m { kernel twice(X: tensor<Nxfp32>, N: int32) { X = X + X; } }"
BOTH = """module m {
  func half(X: tensor<MxNxfp32>) -> tensor<MxNxfp32> { return X * 0.5; }
  kernel narrow(X: tensor<4x4xfp32>) { X = half(X); }
  kernel wide(X: tensor<4x64xfp32>) { X = half(X); }
  kernel open(X: tensor<NxNxfp32>, N: int64) { X = half(X); }
}
module n {
  func half(X: tensor<2xfp32>) -> tensor<2xfp32> { return X / 2.0; }
  kernel other(X: tensor<2xfp32>) { if (X[0] > 0.0) { X = half(X); } }
}
"""


def kinds(fatbin: Any) -> list[tuple[str, str | None]]:
    return [(section.kind, section.target) for section in fatbin.sections]


def text_of(fatbin: Any, kind: str, target: str | None = None) -> str:
    section = fatbin.section(kind, target)
    assert section is not None
    return str(section.data.decode())


def test_without_the_compiler_of_machine_code_the_ir_stands_alone(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> str:
        raise MissingTool("llvmlite", "pip install it")

    monkeypatch.setattr(images, "emit", missing)
    assert kinds(build.compiled(ADD)) == [("graph-ir", None), ("target-ir", "sm_90")]


def test_graph_ir_as_text_gives_the_image_of_the_program_it_was(build: Any) -> None:
    text = text_of(build.compiled(BOTH), "graph-ir")
    assert compile_module(text, ["sm_90"], at="graph") == compile_module(BOTH, ["sm_90"])


def test_kernels_with_open_extents_are_lowered_for_some(build: Any) -> None:
    fatbin = build.compiled(BOTH)
    text = text_of(fatbin, "target-ir", "sm_90")
    assert [kernel.name for kernel in fatbin.metadata.kernels] == ["narrow", "wide", "open", "other"]
    assert [f'sym_name = "{each}"' in text for each in ("narrow", "wide", "open", "other")] == [True] * 4
    assert "%X: tensor<16x16xfp32>, %N: int64" in text
    assert fatbin.metadata.kernel("open").block == (128, 1, 1), "a launch with other extents chooses its own"


def rows_of_four(rows: int) -> str:
    """A program that is legal for N = 4 rows alone."""
    kernel = (
        f"kernel k(X: tensor<Nxfp32>, Y: tensor<{rows}x4xfp32>, N: int32) {{ Y = op.reshape(X, shape=[{rows}, 4]); }}"
    )
    return f"module m {{ {kernel} }}"


@pytest.mark.parametrize(
    ("source", "extent"), [(OPEN, 16), (rows_of_four(8), 32), (rows_of_four(32), 128), (rows_of_four(3), None)]
)
def test_the_first_extent_that_can_be_lowered_is_taken(build: Any, source: str, extent: int | None) -> None:
    fatbin = build.compiled(source)
    if extent is None:
        assert kinds(fatbin) == [("graph-ir", None)]
    else:
        assert f"%X: tensor<{extent}xfp32>" in text_of(fatbin, "target-ir", "sm_90")


def test_a_launch_with_other_extents_is_made_from_graph_ir(build: Any) -> None:
    for numbers in ([1.5], [1.0] * 16, [0.25, -3.0, 7.0]):
        made = executables_of(build.compiled(OPEN), "twice", "sm_90", {"N": len(numbers)})
        arguments = {"X": build.array("fp32", numbers), "N": build.array("int32", len(numbers))}
        assert made.run(arguments)["X"].values.tolist() == [2 * number for number in numbers]


def test_symbols_are_unique_in_an_image_and_launches_follow_them(build: Any) -> None:
    """Both modules have a function `half`, and one of them for two shapes."""
    fatbin = build.compiled(BOTH)
    text = text_of(fatbin, "target-ir", "sm_90")
    symbols = [part.split('"')[0] for part in text.split('sym_name = "tss_kernel_')[1:]]
    assert sorted(symbols) == ["half_0", "half_1_0", "m_half_0", "n_half_0"]
    if fatbin.section("ptx", "sm_90") is not None:
        code = text_of(fatbin, "ptx", "sm_90")
        assert [code.count(f".entry tss_kernel_{symbol}(") for symbol in symbols] == [1, 1, 1, 1]
    written = executables_of(fatbin, "other", "sm_90").run({"X": build.array("fp32", [8.0, 3.0])})
    assert written["X"].values.tolist() == [4.0, 1.5]


def test_what_an_image_says_besides(build: Any) -> None:
    policy = NumericsPolicy(allowFastMath=1, deterministic=0)
    assert build.compiled(ADD, policy=policy).metadata.policy == policy
    plain = build.compiled(ADD)
    assert (plain.metadata.policy, plain.metadata.collective_plans, plain.abi_version) == (None, (), (1, 0))


def test_a_signed_image_is_verified_by_the_key() -> None:
    pytest.importorskip("cryptography", reason="pip install 'tessera-conformance[signing]'")
    key = bytes(range(32))
    verify(compile_module(ADD, ["sm_90"], signing_key=key), [public_key(key)])


@pytest.mark.parametrize("targets", [[], ["sm_1"], ["sm_90", "sm_90"], "sm_90"])
def test_targets_are_known_and_named_once(targets: Any) -> None:
    with pytest.raises(Failure) as caught:
        compile_module(ADD, targets)
    assert caught.value.status == Status.TESS_ERR_INVALID_VALUE


def test_a_source_is_at_one_of_four_levels() -> None:
    with pytest.raises(Failure, match="dsl, graph, tile or target"):
        compile_module(ADD, ["sm_90"], at="schedule")  # type: ignore[arg-type]  # that is the point


REFUSED = [
    ("module m { kernel k(A: tensor<4xfp32>) { A = A + ; } }", "syntax", "", "parse"),
    ("module m { kernel k(A: tensor<4xfp32>) { A = A + B; } }", "types", "B", "verify"),
    ("module m { func f(A: tensor<4xfp32>) -> tensor<4xfp32> { return A; } }", "types", "there is no kernel", "lower"),
    ("module m { kernel double(A: tensor<4xfp32>) { A = -A; } }", "types", "called double", "lower"),
    ("module m { kernel k(int: tensor<4xfp32>) { int = -int; } }", "types", "parameter of @k is called int", "lower"),
    ("module m { kernel k(A: tensor<Nxfp32>) { A = -A; } }", "shapes", "the dimension N, which no", "lower"),
    ("module m { kernel k(A: tensor<Nxfp32>, N: fp32) { A = -A; } }", "shapes", "the dimension N, which", "lower"),
    ("module m { kernel k(A: tensor<?xfp32>) { A = -A; } }", "shapes", "a dimension ?, which no", "lower"),
    (
        "module m { kernel k(A: tensor<4xfp32>) { A = -A; } } module n { kernel k(A: tensor<4xfp32>) { A = -A; } }",
        "types",
        "two kernels are called k",
        "lower",
    ),
    (
        "module m { kernel k(A: tensor<10x10xfp32>) { let B: tensor<10x10xfp32> = A @ A; schedule.tile(B, m=4, n=4); "
        "A = B; } }",
        "schedule",
        "",
        None,
    ),
]


@pytest.mark.parametrize(("source", "category", "said", "phase"), REFUSED)
def test_a_program_that_is_no_module_is_refused_by_a_diagnostic(
    source: str, category: str, said: str, phase: str | None
) -> None:
    with pytest.raises(Rejection) as caught:
        compile_module(source, ["sm_90"], filename="given.tsr")
    first = caught.value.diagnostics[0]
    assert (first.category, first.filename) == (category, "given.tsr")
    assert said in first.message
    assert phase is None or first.phase == phase


def test_every_finding_about_the_kernels_is_told() -> None:
    source = "module m { kernel int(A: tensor<Nxfp32>) { A = -A; } kernel k(A: tensor<MxKxfp32>) { A = -A; } }"
    with pytest.raises(Rejection) as caught:
        compile_module(source, ["sm_90"])
    assert len(caught.value.diagnostics) == 4


def test_options_hold_for_kernels_that_are_lowered_at_launch(build: Any) -> None:
    """They stand in the Graph IR, so that whoever lowers it follows them; an annotation of the program stands first."""
    source = "module m { kernel k(A: tensor<NxNxfp32>, C: tensor<NxNxfp32>, N: int32)%s { C = A @ A; } }"
    text = text_of(build.compiled(source % "", options=Options(tile=(8, 16, 4), prefetch="none")), "graph-ir")
    assert 'schedule = [["tile", [8, 16, 4]], ["prefetch", "none"]]' in text
    text = text_of(build.compiled(source % " @schedule(tile=4, owner=9)", options=Options((8, 16, 4), 3)), "graph-ir")
    assert 'schedule = [["owner", 9], ["tile", [4, 4]], ["depth", 3]]' in text
    assert "schedule" not in text_of(build.compiled(source % ""), "graph-ir")


BYTES = """
import hashlib, sys
from tessera_reference.compilation.images import compile_module
print(hashlib.sha256(compile_module(sys.stdin.read(), ["sm_80", "gfx90a"])).hexdigest())
"""


@pytest.mark.slow
def test_the_bytes_of_an_image_are_the_same_in_every_process() -> None:
    expected = hashlib.sha256(compile_module(BOTH, ["sm_80", "gfx90a"])).hexdigest()
    for seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", BYTES], input=BOTH, env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("C = A + B;", ["C"]),
        ("", []),
        ("A = A;", []),
        ("let T: tensor<4xfp32> = A; A = B; B = T;", ["A", "B"]),
        ("if (n > 0) { B = -A; }", ["B"]),
        ("for (i in 0:n) { C = C + A; }", ["C"]),
        ("B[0] = A[1];", ["B"]),
        ("if (n > 0) { A = B; return; } C = B;", ["A", "C"]),
        ("if (n > 0) { A = B; return; } else { C = B; return; }", ["A", "C"]),
    ],
)
def test_written_is_what_the_kernel_may_leave_changed(build: Any, body: str, written: list[str]) -> None:
    entry = build.entry_of(
        f"module m {{ kernel k(A: tensor<4xfp32>, B: tensor<4xfp32>, C: tensor<4xfp32>, n: int32) {{ {body} }} }}"
    )
    assert [parameter.name for parameter in entry.parameters if parameter.written] == written


def test_a_program_says_the_largest_block_and_the_most_shared_memory_of_its_launches(build: Any) -> None:
    source = "module m { kernel k(A: tensor<64x64xbf16>, C: tensor<64x64xbf16>, s: tensor<64xbf16>) "
    source += "{ C = A @ A; s = op.sum(A, axis=1); } }"
    fatbin = build.compiled(source, ("sm_90", "gfx942"))
    blocks, shared = [], []
    for target in fatbin.targets:
        section = fatbin.section("target-ir", target)
        text = section.data.decode()
        blocks += [int(part.split(",")[0]) for part in text.split("block = [")[1:]]
        shared += [int(part.split(",")[0]) for part in text.split("smem_bytes = ")[1:]]
    (entry,) = fatbin.metadata.kernels
    assert len(blocks) == 4 and len(set(blocks)) > 1 and max(shared) > 0
    assert (entry.block, entry.shared_bytes, entry.dynamic_shared) == ((max(blocks), 1, 1), max(shared), False)


SOURCE = """module m {
  func half(X: tensor<MxNxfp32>) -> tensor<MxNxfp32> { return X * 0.5; }
  kernel product(A: tensor<20x24xbf16>, B: tensor<24x18xbf16>, C: tensor<20x18xbf16>) {
    let P: tensor<20x18xbf16> = A @ B;
    schedule.tile(P, m=16, n=16, k=8, pad=[12, 14, 0]);
    schedule.pipeline(P, depth=3);
    C = op.relu(P);
  }
  kernel halved(X: tensor<Nx4xfp32>, N: int32) { X = half(X); }
  kernel same(X: tensor<4xfp32>) { }
}
"""
PLANS = (
    CollectivePlan("all_reduce", "dp", "tree"),
    CollectivePlan("broadcast", None, "ring", "default", "f", chunk_bytes=512, qos="bulk"),
)
PRODUCT = "%P = matmul -> tensor<20x18xbf16>"


def test_what_targets_decide_alike_is_told_once(build: Any) -> None:
    assert len(build.compiled(SOURCE, ("sm_80", "sm_90")).metadata.explanation.fusion_groups) == 1


def test_a_kernel_with_named_dimensions_is_explained_for_a_launch(build: Any) -> None:
    fatbin = build.compiled(SOURCE)
    found = explain_launch(fatbin, "halved", "sm_90", {"N": 8})
    assert [fusion_group.kernel for fusion_group in (*found.fusion_groups, *found.tile_shapes)] == ["halved", "halved"]
    assert "tensor<8x4xfp32>" in found.fusion_groups[0].operations[0]
    assert dict(found.tile_shapes[0].extents) == {"m": 8, "n": 4}


def test_the_text_names_what_was_decided_and_what_is_not_yet(build: Any) -> None:
    metadata = build.compiled(SOURCE).metadata
    assert explanation_text(replace(metadata, collective_plans=PLANS)).splitlines() == [
        "kernel product",
        f"  fusion group 0: {PRODUCT}; %C_0 = relu -> tensor<20x18xbf16>",
        f"  tile of {PRODUCT}: depth=3, k=8, m=16, n=16",
        "kernel halved",
        "  fusion groups and tiles are decided at launch, for N",
        "kernel same",
        "  nothing to tile: the host function computes it",
        "collective all_reduce along dp: tree, a hint",
        "collective broadcast of @f over the whole mesh: ring, by size, chunk_bytes 512, qos bulk",
    ]
    assert explanation_text(metadata).endswith("collectives: no plans; the runtime chooses\n")


def test_the_json_is_the_value(build: Any) -> None:
    metadata = replace(build.compiled(SOURCE).metadata, collective_plans=PLANS[:1])
    value = json.loads(explanation_json(metadata))
    assert value == json.loads(json.dumps(explanation_value(metadata)))
    assert value["kernels"]["halved"] == {"level": "program", "decided_at_launch_for": ["N"]}
    assert value["fusion_groups"][0]["operations"][0] == PRODUCT
    assert value["tile_shapes"][0]["extents"] == {"depth": 3, "k": 8, "m": 16, "n": 16}
    assert value["collective_plans"] == [
        {"collective": "all_reduce", "axis": "dp", "algorithm": "tree", "source": "hint"}
    ]


TEXT = """"builtin.module"() ({{
  "tessera.graph.mesh"() {{sym_name = "g", axes = ["dp", "tp"], shape = [2, 3]}} : () -> ()
  "tessera.graph.kernel"() ({{
  ^bb0(%x: tensor<6xfp32>):
    {lines}
    "tessera.graph.return"(%x) : (tensor<6xfp32>) -> ()
  }}) {{sym_name = "k", function_type = (tensor<6xfp32>) -> (tensor<6xfp32>)}} : () -> ()
}}) {{sym_name = "m"}} : () -> ()
"""


def planned(*lines: str) -> tuple[CollectivePlan, ...]:
    image = compile_module(TEXT.format(lines="\n    ".join(lines)), ["sm_90"], at="graph")
    return read(image).metadata.collective_plans


def issue(name: str, attributes: str) -> str:
    return f'{name} = tessera.collective.all_reduce %x : tensor<6xfp32> {{op="sum", {attributes}}}'


@pytest.mark.parametrize(
    ("written", "kept"),
    [("7", 7), ('"high"', "high"), ("true", "true"), ("[1, 2.5]", "[1, 2.5]"), ("18446744073709551616 : i66", None)],
)
def test_what_has_no_meaning_is_kept_as_it_is_written(written: str, kept: Any) -> None:
    (found,) = planned(issue("%a", f'axis="dp", priority={written}'))
    assert found.priority == (written if kept is None else kept)


X = "X: tensor<4x4xfp32>"


@pytest.mark.parametrize(
    ("parameters", "body", "orders"),
    [
        (X, "X = X + X;", set()),
        (X, "X = X @ X;", {FOLD}),
        (f"{X}, Y: tensor<4xfp32>", "Y = op.sum(X, axis=0);", {PAIRWISE}),
        (f"{X}, Y: tensor<4xfp32>", "Y = op.max(X, axis=0);", set()),
        ("X: tensor<4x4xint32>, Y: tensor<4xint32>", "Y = op.sum(X, axis=0);", set()),
        (f"{X}, I: tensor<3xint32>, Y: tensor<3x4xfp32>", "X = op.scatter_add(X, I, Y, axis=0);", {FOLD}),
        (f"{X}, Y: tensor<4xfp32>, G: tensor<4xfp32>", "G = op.grad(X * Y, Y);", {FOLD, PAIRWISE}),
    ],
)
def test_an_operation_that_adds_tells_the_order(build: Any, parameters: str, body: str, orders: set[Any]) -> None:
    """Adjoints add in either: of a broadcast, such as the last, by a sum, of a gather term by term."""
    fatbin = build.compiled(f"module m {{ kernel k({parameters}) {{ {body} }} }}")
    assert reduction_orders(fatbin, "k", "sm_90") == orders
