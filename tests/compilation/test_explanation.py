"""What is told of a module: fusion groups, tile shapes, plans; as data, text and JSON (RT-17-03, -08, -09)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tessera_reference.abi.fatbin import CollectivePlan, FusionGroup, TileShape
from tessera_reference.compilation.executables import explain_launch
from tessera_reference.compilation.images import explanation_json, explanation_text, explanation_value

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


def test_fusion_groups_and_tiles_are_those_of_the_schedule(build: Any) -> None:
    explanation = build.compiled(SOURCE).metadata.explanation
    (group,) = explanation.fusion_groups
    assert group == FusionGroup("product", (PRODUCT, "%C_0 = relu -> tensor<20x18xbf16>"))
    extents = (("depth", 3), ("k", 8), ("m", 16), ("n", 16))
    assert explanation.tile_shapes == (TileShape("product", PRODUCT, extents),)


def test_what_targets_decide_alike_is_told_once(build: Any) -> None:
    assert len(build.compiled(SOURCE, ("sm_80", "sm_90")).metadata.explanation.fusion_groups) == 1


def test_a_kernel_with_named_dimensions_is_explained_for_a_launch(build: Any) -> None:
    fatbin = build.compiled(SOURCE)
    found = explain_launch(fatbin, "halved", "sm_90", {"N": 8})
    assert [each.kernel for each in (*found.fusion_groups, *found.tile_shapes)] == ["halved", "halved"]
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
