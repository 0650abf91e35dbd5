"""Entries of kernels: the parameter buffer, tensors behind pointers, what is written, what a launch takes (RT-10)."""

from __future__ import annotations

from typing import Any

import pytest

SAMPLE = """module attention {
  kernel flash_attention_fused(Q: tensor<BxHxLxDxbf16>, K: tensor<BxHxLxDxbf16>, V: tensor<BxHxLxDxbf16>,
      O: tensor<BxHxLxDxbf16>, B: int32, H: int32, L: int32, D: int32, scale: fp32) {
    O = op.flash_attention(Q, K, V);
  }
}
"""


def test_the_sample_of_the_specification_has_its_parameter_buffer(build: Any) -> None:
    """The offsets that section 10.1 prints."""
    entry = build.entry_of(SAMPLE)
    assert (entry.name, entry.module, entry.level, entry.grid) == (
        "flash_attention_fused",
        "attention",
        "program",
        None,
    )
    assert [each.name for each in entry.parameters] == ["Q", "K", "V", "O", "B", "H", "L", "D", "scale"]
    assert entry.layout.offsets == (0x00, 0x08, 0x10, 0x18, 0x20, 0x24, 0x28, 0x2C, 0x30)
    assert entry.layout.size == 0x38
    first, last = entry.parameters[0], entry.parameters[-1]
    assert (first.type, first.dtype, first.shape) == ("ptr", "bf16", ("B", "H", "L", "D"))
    assert (last.type, last.dtype, last.shape) == ("fp32", None, None)
    assert [each.name for each in entry.parameters if each.written] == ["O"]


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
    assert [each.name for each in entry.parameters if each.written] == written


def test_scalars_of_every_type_keep_their_order(build: Any) -> None:
    types = ["bool", "int8", "int64", "fp16", "complex64", "fp64", "tf32", "int16"]
    parameters = ", ".join(f"{chr(97 + place)}: {type_}" for place, type_ in enumerate(types))
    entry = build.entry_of(f"module m {{ kernel k({parameters}, X: tensor<2xtf32>) {{ X = -X; }} }}")
    found = [each.type for each in entry.parameters]
    assert found == ["bool", "int8", "int64", "fp16", "complex64", "fp64", "fp32", "int16", "ptr"]
    assert entry.parameters[-1].dtype == "tf32"
    assert entry.layout.offsets == (0, 1, 8, 16, 24, 32, 40, 44, 48)


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
