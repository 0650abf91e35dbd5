"""The methods of the adapter: levels of IR, single operations, images; and areas that are imported late."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from operator import mul
from typing import Any
from unittest import mock

import pytest

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.dsl import tensor_of
from tessera_conformance.interface import interface
from tessera_conformance.schemas import first_problem
from tessera_conformance.tensors import Tensor
from tessera_reference import adapter
from tessera_reference.adapter import AREAS, ReferenceAdapter, load_areas, make
from tessera_reference.ir.diagnostics import MissingTool
from tessera_reference.target_ir.emission import host, machine_code

PRODUCT = """module m {
  func f(A: tensor<20x24xbf16>, B: tensor<24x18xbf16>) -> tensor<20x18xbf16> { return op.relu(A @ B); }
}"""
CHAIN = {
    "source": "module m { func f(X: tensor<2xfp32>) -> tensor<2xfp32> { return -X; } }",
    "function": "f",
    "inputs": {"X": Tensor.from_words("fp32", (2,), [0, 1])},
}


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


X = Tensor.from_words("int32", (32,), range(32))


ABI_SOURCE = "module m { kernel k(x: tensor<4xint32>, n: int32) { x[0] = n; } }"
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
    "another-level": ("compile", {"source": ABI_SOURCE, "at": "schedule"}, "at"),
    "unknown-target": ("compile", {"source": ABI_SOURCE, "targets": ["sm_1"]}, "sm_1"),
    "no-target": ("compile", {"source": ABI_SOURCE, "targets": []}, "targets"),
    "targets-are-text": ("compile", {"source": ABI_SOURCE, "targets": "sm_90"}, "targets"),
    "a-target-is-a-number": ("compile", {"source": ABI_SOURCE, "targets": [90]}, "targets[0]"),
    "half-a-version": ("compile", {"source": ABI_SOURCE, "abi_version": [1]}, "abi_version"),
    "version-below-zero": ("compile", {"source": ABI_SOURCE, "abi_version": [1, -1]}, "abi_version[1]"),
    "half-a-policy": ("compile", {"source": ABI_SOURCE, "policy": {"deterministic": 1}}, "stableReductions"),
    "policy-of-twos": (
        "compile",
        {"source": ABI_SOURCE, "policy": dict.fromkeys(SWITCHES, 2)},
        "stableReductions is 2",
    ),
    "short-key": ("compile", {"source": ABI_SOURCE, "signing_key": "00"}, "key"),
    "pack-is-a-word": ("compile", {"source": ABI_SOURCE, "ir_pack": "yes"}, "ir_pack"),
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
        ("compile", {"source": ABI_SOURCE}),
        ("inspect", {"image": make().abi_compile(source=ABI_SOURCE, abi_version=[2, 5])["image"]}),
    ],
)
def test_an_answer_is_as_the_schema_has_it(method: str, given: dict[str, Any]) -> None:
    answer = getattr(make(), f"abi_{method}")(**given)
    assert first_problem("tessera:protocol/abi", f"{method}.params", given) is None
    assert first_problem("tessera:protocol/abi", f"{method}.result", answer) is None


SCRIPT = """
import sys
from tessera_reference.adapter import make
adapter = make()
adapter.hello()
{call}
packages = {{name.split(".")[1] for name in sys.modules if name.startswith("tessera_reference.")}}
print(*sorted(packages & set({packages!r})))
"""
LOAD = "from tessera_reference.adapter import load_whole; load_whole()"
HEAVY = ("graph", "language", "schedule", "tile", "target", "runtime", "wsp", "host_io", "binding")
PROGRAM = "module m { func f(x: tensor<2xfp32>) -> tensor<2xfp32> { return x + x; } }"


@pytest.mark.parametrize(
    ("call", "absent"),
    [
        ("", HEAVY),
        ("adapter.runtime_tessInit(flags=0)", ("language", "schedule", "tile", "target", "wsp", "binding")),
        (f"adapter.language_verify(source={PROGRAM!r})", ("tile", "target", "runtime", "wsp", "binding")),
    ],
)
def test_what_is_not_asked_for_is_not_imported(call: str, absent: tuple[str, ...]) -> None:
    script = SCRIPT.format(call=call, packages=HEAVY)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    actual = set(done.stdout.split())
    assert actual.isdisjoint(absent)
    assert not call or actual


def test_the_whole_is_loaded_without_what_extras_bring() -> None:
    """The violators and variants are judged in a bare environment, too."""
    absent = ["cffi", "cryptography", "distributed", "jax", "llvmlite", "mpi4py"]
    script = f"import sys; sys.modules.update(dict.fromkeys({absent})); {LOAD}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_method_of_the_interface_has_an_area() -> None:
    load_areas()
    declared = {f"{area}_{name}" for area, row in interface().areas.items() if area in AREAS for name in row.methods}
    assert len(declared) > 100
    assert {name for name in declared if not callable(getattr(make(), name, None))} == set()
    assert getattr(make(), "language_translate", None) is None


def test_a_subclass_reaches_what_is_loaded_late() -> None:
    class Counting(ReferenceAdapter):
        calls = 0

        def language_parse(self, **request: Any) -> Any:
            self.calls += 1
            return super().language_parse(**request)

    adapter: Any = Counting()
    assert adapter.language_parse(source=PROGRAM)["modules"][0]["name"] == "m"
    assert adapter.calls == 1


def test_loading_does_not_undo_a_substitute() -> None:
    """The area is loaded while the substitute stands, and the method is called after it."""
    with mock.patch.object(ReferenceAdapter, "abi_dtype_ids", return_value="of the substitute"):
        load_areas("abi")
        assert make().abi_dtype_ids() == "of the substitute"
    assert make().abi_dtype_ids()["ids"]["fp32"] >= 0


SUBSTITUTED = """
import sys
from tessera_conformance.strength import replaced
from tessera_reference.adapter import make
from tessera_reference.schedule import nests
REWRITTEN = nests.rewritten
def substitute(*given, **named):
    return REWRITTEN(*given, **named)
with replaced("RT-04.1-01", "a test", make, (nests, "rewritten", substitute)).broken() as adapter:
    adapter.language_lower(source={program!r}, to="tile")
modules = [module for name, module in sys.modules.items() if name.startswith("tessera_reference.")]
print(*(module.__name__ for module in modules if substitute in vars(module).values()))
"""


def test_nothing_keeps_a_substitute_that_was_in_force_when_it_was_first_needed() -> None:
    script = SUBSTITUTED.format(program=PROGRAM)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_a_reset_forgets_the_machine_and_keeps_the_compiler() -> None:
    adapter = make()
    runtime, compiler = adapter.runtime, adapter.compiler
    assert adapter.runtime is runtime
    adapter.session_reset()
    assert adapter.runtime is not runtime
    assert adapter.compiler is compiler
