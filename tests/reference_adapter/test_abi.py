"""Requests to the abi methods that cannot be met are refused by name; what is exact stays exact."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_conformance.adapter import Refusal
from tessera_conformance.schemas import first_problem
from tessera_reference.adapter import make

SOURCE = "module m { kernel k(x: tensor<4xint32>, n: int32) { x[0] = n; } }"
SWITCHES = ("stableReductions", "deterministic", "rngStateless", "allowFastMath")

BAD = {
    "no-signature": ("pack", {"values": []}, "signature"),
    "signature-is-a-number": ("pack", {"signature": 3, "values": []}, "signature"),
    "values-are-text": ("pack", {"signature": "k(int n)", "values": "5"}, "values"),
    "bits-are-no-text": ("pack", {"signature": "k(int n)", "values": [{"bits": 5}]}, "values[0].bits"),
    "bits-in-upper-case": ("pack", {"signature": "k(int8 n)", "values": [{"bits": "AB"}]}, "values[0].bits"),
    "half-a-byte": ("pack", {"signature": "k(int8 n)", "values": [{"bits": "a"}]}, "values[0].bits"),
    "more-than-bits": ("pack", {"signature": "k(int8 n)", "values": [{"bits": "aa", "type": "int8"}]}, "values[0]"),
    "bits-too-short": ("pack", {"signature": "k(int n)", "values": [{"bits": "aa"}]}, "values[0]"),
    "bits-too-many": ("pack", {"signature": "k(int8 n)", "values": [{"bits": "aa"}, {"bits": "bb"}]}, "2 values"),
    "float-for-int": ("pack", {"signature": "k(int n)", "values": [1.0]}, "1.0"),
    "int-for-bool": ("pack", {"signature": "k(bool b)", "values": [1]}, "1"),
    "null": ("pack", {"signature": "k(int n)", "values": [None]}, "None"),
    "buffer-with-spaces": ("unpack", {"signature": "k(int n)", "buffer": "00 00"}, "buffer"),
    "buffer-too-short": ("unpack", {"signature": "k(int n)", "buffer": "000000"}, "argSize"),
    "no-source": ("compile", {}, "source"),
    "another-level": ("compile", {"source": SOURCE, "at": "schedule"}, "at"),
    "unknown-target": ("compile", {"source": SOURCE, "targets": ["sm_1"]}, "sm_1"),
    "no-target": ("compile", {"source": SOURCE, "targets": []}, "targets"),
    "targets-are-text": ("compile", {"source": SOURCE, "targets": "sm_90"}, "targets"),
    "a-target-is-a-number": ("compile", {"source": SOURCE, "targets": [90]}, "targets[0]"),
    "half-a-version": ("compile", {"source": SOURCE, "abi_version": [1]}, "abi_version"),
    "version-below-zero": ("compile", {"source": SOURCE, "abi_version": [1, -1]}, "abi_version[1]"),
    "half-a-policy": ("compile", {"source": SOURCE, "policy": {"deterministic": 1}}, "stableReductions"),
    "policy-of-twos": (
        "compile",
        {"source": SOURCE, "policy": dict.fromkeys(SWITCHES, 2)},
        "stableReductions is 2",
    ),
    "short-key": ("compile", {"source": SOURCE, "signing_key": "00"}, "key"),
    "pack-is-a-word": ("compile", {"source": SOURCE, "ir_pack": "yes"}, "ir_pack"),
    "no-image": ("inspect", {}, "image"),
    "image-is-no-data": ("inspect", {"image": "fatbin"}, "image"),
    "image-is-a-number": ("inspect", {"image": 7}, "image"),
    "image-of-zeros": ("inspect", {"image": "00" * 200}, "magic"),
}  # fmt: skip


@pytest.mark.parametrize(("method", "given", "words"), BAD.values(), ids=BAD)
def test_a_bad_request_is_refused_by_name(method: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal) as refused:
        getattr(make(), f"abi_{method}")(**given)
    outcome = refused.value.outcome
    assert (outcome.code, outcome.phase) == ("TESS_ERR_INVALID_VALUE", "call")
    assert words in outcome.message


def test_a_program_that_is_not_legal_is_refused_with_its_diagnostics() -> None:
    with pytest.raises(Refusal) as refused:
        make().abi_compile(source="module m { kernel k(x: tensor<4xfp32>) { x = y; } }")
    assert refused.value.outcome.code == "types"
    assert refused.value.outcome.diagnostics


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("dtype_ids", {}),
        ("constants", {}),
        ("address_spaces", {}),
        ("header", {}),
        ("parameter_layout", {"signature": "k(x*, int n)"}),
        ("pack", {"signature": "k(x*, int n)", "values": [1, 2]}),
        ("unpack", {"signature": "k(x*, int n)", "buffer": "00" * 16}),
        ("compile", {"source": SOURCE}),
        ("inspect", {"image": make().abi_compile(source=SOURCE, abi_version=[2, 5])["image"]}),
    ],
)
def test_an_answer_is_as_the_schema_has_it(method: str, given: dict[str, Any]) -> None:
    answer = getattr(make(), f"abi_{method}")(**given)
    assert first_problem("tessera:protocol/abi", f"{method}.params", given) is None
    assert first_problem("tessera:protocol/abi", f"{method}.result", answer) is None


def test_options_reach_the_image() -> None:
    policy = {"stableReductions": 0, "deterministic": 1, "rngStateless": 0, "allowFastMath": 1}
    adapter = make()
    image = adapter.abi_compile(source=SOURCE, targets=["gfx90a", "sm_80"], policy=policy, ir_pack=True)
    found = adapter.abi_inspect(image=image["image"])
    assert found["targets"] == ["gfx90a", "sm_80"]
    assert found["policy"] == policy
    assert [(each["kind"], each["target"]) for each in found["sections"]] == [("metadata", None), ("graph-ir", None)]


def test_a_signature_section_is_told() -> None:
    pytest.importorskip("cryptography")
    adapter = make()
    image = adapter.abi_compile(source=SOURCE, signing_key="07" * 32)["image"]
    kinds = [each["kind"] for each in adapter.abi_inspect(image=image)["sections"]]
    assert kinds[-1] == "signature"


def test_bits_are_neither_read_nor_rounded() -> None:
    """A signalling NaN, and a bool that is neither 0 nor 1."""
    adapter = make()
    exact = [{"bits": "0100a07f"}, {"bits": "02"}]
    buffer = adapter.abi_pack(signature="k(float f, bool b)", values=exact)["buffer"]
    assert buffer == "0100a07f02000000"
    assert adapter.abi_unpack(signature="k(float f, bool b)", buffer=buffer) == {"values": [exact[0], {"bits": "01"}]}
