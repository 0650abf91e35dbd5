"""Running texts of the levels below Graph IR, and lowering and executing programs there (language spec, 6 to 8, 11).

Optional parameters of the protocol are sent only if they differ from their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tessera_conformance.check import Check
from tessera_conformance.dsl import func, module
from tessera_conformance.protocol import Observation, Rejected
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor

from .kernel_texts import KernelText
from .programs import Function

WARPS = {"sm_80": 32, "sm_90": 32, "gfx90a": 64, "gfx942": 64}
"""The lanes of a warp on each target that the suite knows."""

BOTH_VENDORS = ("sm_90", "gfx942")
"""One target of each vendor."""

LOWER_LEVELS = ("schedule", "tile", "target")
"""The levels below Graph IR, downwards; `execute-tile` is the feature of executing a program at Tile IR."""

STAGED: Mapping[str, Any] = {"tile": [16, 16, 16], "depth": 2, "prefetch": "shared"}
"""A schedule of products with tiles of a matrix unit's size."""
SAMPLE = module(
    func(
        "let C: tensor<1024x1024xbf16> = op.matmul(A, B);",
        "return C;",
        parameters="A: tensor<1024x1024xbf16>, B: tensor<1024x1024xbf16>",
        result="tensor<1024x1024xbf16>",
        name="mm",
    ),
    name="demo",
)
"""The program of section 13.1."""

DEFAULTS: Mapping[str, Any] = {"level": "strict", "target": "sm_90", "schedule": {}}
"""Values of optional parameters that are left out."""


def verified(impl: Implementation, text: str, at: str, target: str = "sm_90") -> Observation:
    """Return the verification of a text of a level."""
    observation: Observation = impl.language.verify_ir(text=text, **_stated(at=at, target=target))
    return observation


def executed_text(
    impl: Implementation, text: str, at: str, target: str = "sm_90", function: str = "tss_kernel_k", **inputs: Tensor
) -> Observation:
    """Run a kernel of a text, or a function of the host; an omitted buffer begins uninitialised."""
    stated = _stated(target=target)
    observation: Observation = impl.language.execute_ir(text=text, function=function, inputs=inputs, at=at, **stated)
    return observation


def results_of_text(
    impl: Implementation, check: Check, text: str, at: str, target: str = "sm_90", **inputs: Tensor
) -> list[Any]:
    """Return the values that the function `f` of a text returns."""
    return list(check.returns(executed_text(impl, text, at, target, "f", **inputs))["outputs"])


def buffers_after(
    impl: Implementation,
    check: Check,
    kernel: KernelText,
    **inputs: Tensor,
) -> list[Any]:
    """Run a kernel on its own target; return its buffers afterwards, in the order of the parameters."""
    target = kernel.attributes.get("target", "sm_90")
    observation = executed_text(impl, kernel.module, kernel.level, target, kernel.name, **inputs)
    outputs = list(check.returns(observation)["outputs"])
    buffers = [
        parameter for parameter in kernel.parameters.values() if parameter.type.startswith(("memref", "!llvm.ptr"))
    ]
    check.equal(len(outputs), len(buffers), "the number of buffers")
    return outputs


def fails(
    impl: Implementation,
    check: Check,
    kernel: KernelText,
    line: int | None = None,
    category: str | tuple[str, ...] = "tile",
    **inputs: Tensor,
) -> Rejected:
    """Check that a kernel ends with an error while it runs: at a line, or at its critical operation if it has one."""
    target = kernel.attributes.get("target", "sm_90")
    observation = executed_text(impl, kernel.module, kernel.level, target, kernel.name, **inputs)
    return check.rejects(observation, category=category, phase="execute", at_line=line or kernel.critical or None)


def runs_if(
    impl: Implementation, check: Check, legal: bool, kernel: KernelText, expected: Tensor, **inputs: Tensor
) -> None:
    """Check that a legal kernel leaves these values in its last buffer; an illegal one fails where it is critical."""
    if legal:
        check.bits(buffers_after(impl, check, kernel, **inputs)[-1], expected)
    else:
        fails(impl, check, kernel, None, "tile", **inputs)


def executed(
    impl: Implementation,
    source: str,
    at: str,
    target: str = "sm_90",
    schedule: Mapping[str, Any] | None = None,
    function: str = "f",
    **inputs: Tensor,
) -> Observation:
    """Run a function of a program at a level, lowered for a target."""
    stated = _stated(at=at, target=target, schedule=schedule or {}, level=impl.level)
    observation: Observation = impl.language.execute(source=source, function=function, inputs=inputs, **stated)
    return observation


def results_at(
    impl: Implementation,
    check: Check,
    source: str,
    at: str,
    target: str = "sm_90",
    schedule: Mapping[str, Any] | None = None,
    function: str = "f",
    **inputs: Tensor,
) -> list[Any]:
    """Return the values of a function, computed at a level."""
    return list(check.returns(executed(impl, source, at, target, schedule, function, **inputs))["outputs"])


@dataclass(frozen=True)
class Lowered:
    """A program at a level: its functions in order, and the text."""

    functions: Mapping[str, Function]
    kinds: Mapping[str, str]
    attributes: Mapping[str, Mapping[str, Any]]
    text: str

    @property
    def kernels(self) -> list[str]:
        """The names of its kernels of a device."""
        return [name for name, kind in self.kinds.items() if kind == "kernel"]

    def operations(self, name: str = "") -> list[Mapping[str, Any]]:
        """Return the operations of one name, or all, of every function in order."""
        every = [operation for function in self.functions.values() for operation in function.operations]
        return [operation for operation in every if name in ("", operation["name"].strip('"'))]


def lowered(
    impl: Implementation,
    check: Check,
    source: str,
    to: str,
    target: str = "sm_90",
    schedule: Mapping[str, Any] | None = None,
) -> Lowered:
    """Return a program lowered to a level for a target."""
    stated = _stated(target=target, schedule=schedule or {})
    answer = check.accepts(impl.language.lower(source=source, to=to, **stated))
    functions, kinds, attributes = {}, {}, {}
    for entry in answer["functions"]:
        name = entry["name"].lstrip("@").rpartition(".")[2]
        functions[name] = Function(tuple(entry["arguments"]), tuple(entry["results"]), tuple(entry["operations"]))
        kinds[name], attributes[name] = entry.get("kind", "func"), entry.get("attributes", {})
    return Lowered(functions, kinds, attributes, answer["text"])


def emitted(
    impl: Implementation, check: Check, source: str, to: str, target: str, schedule: Mapping[str, Any] | None = None
) -> str:
    """Return the text of a program for a vendor's tools: to `llvm`, `ptx` or `amdgcn`."""
    stated = _stated(target=target) | ({} if schedule is None else {"schedule": schedule})
    text = check.accepts(impl.language.lower(source=source, to=to, **stated))["text"]
    assert isinstance(text, str)
    return text


def _stated(**parameters: Any) -> dict[str, Any]:
    """Return optional parameters without those that have their defaults."""
    return {name: value for name, value in parameters.items() if name not in DEFAULTS or value != DEFAULTS[name]}
