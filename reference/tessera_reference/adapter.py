"""The reference as an implementation: the one bridge between it and the conformance harness.

Each protocol method is a method here; `docs/protocol.md` describes what they take and return.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.observations import Diagnostic
from tessera_conformance.protocol import diagnostic_message
from tessera_conformance.tensors import Tensor

from . import __version__
from .graph.execution import InputMismatch, UnknownFunction, execute
from .ir import diagnostics
from .ir.diagnostics import Rejection, UnsupportedConstruct
from .ir.module import Function, Instruction, Module
from .ir.operation import AttributeValue
from .ir.text import print_module
from .language import CompiledModule, compile_source, parse, syntax
from .numerics.array import Array
from .numerics.environment import check_environment
from .numerics.formats import DType, dtype

KINDS = {
    syntax.KernelDecl: "kernel",
    syntax.FunctionDecl: "func",
    syntax.TypeDecl: "type",
    syntax.Let: "const",
    syntax.MeshDecl: "mesh",
}


FEATURES = ("broadcasting-ops", "extra-dtypes", "matmul-out", "tensor-ops", "zero-sizes")
"""What the reference has beyond the core of the language."""


class ReferenceAdapter:
    """Answers for the language as far as the reference goes."""

    def hello(self) -> dict[str, Any]:
        """Identity and claims; checks first that the machine's arithmetic is fit for the canon."""
        check_environment()
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "tessera-reference", "version": __version__},
            "documents": ["language_ir"],
            "capabilities": dict.fromkeys(FEATURES, "enforced"),
            "arithmetic": {"level": "strict", "trees": {"matmul": "fold", "sum": "pairwise"}},
        }

    def language_parse(self, *, source: str) -> dict[str, Any]:
        """The declarations of each module."""
        with _outcomes():
            program = parse(source, "<source>")
        return {
            "modules": [
                {
                    "name": module.name,
                    "declarations": [{"kind": KINDS[type(entry)], "name": entry.name} for entry in module.declarations],
                }
                for module in program.modules
            ]
        }

    def language_verify(self, *, source: str) -> dict[str, Any]:
        """The warnings of a legal program."""
        compiled = self._compile(source)
        return {"warnings": [diagnostic_message(_diagnostic(entry)) for entry in compiled.warnings]}

    def language_lower(self, *, source: str, to: str) -> dict[str, Any]:
        """The Graph IR of every function."""
        if to != "graph":
            raise NotSupported(f"language.lower.{to}")
        modules = self._compile(source).modules
        functions = [_function(function) for module in modules for function in module.functions.values()]
        return {"functions": functions, "text": "".join(print_module(module) for module in modules)}

    def language_execute(
        self, *, source: str, function: str, inputs: Mapping[str, Tensor], level: str = "strict"
    ) -> dict[str, Any]:
        """The results of a function, in order; every level is given the strict bits."""
        module, name = _find(self._compile(source).modules, function)
        arrays = {key: _array(tensor) for key, tensor in inputs.items()}
        with _outcomes():
            return {"outputs": [_tensor(result) for result in execute(module, name, arrays)]}

    def _compile(self, source: str) -> CompiledModule:
        with _outcomes():
            return compile_source(source)


def make() -> ReferenceAdapter:
    """The reference, ready to be asked."""
    return ReferenceAdapter()


@contextmanager
def _outcomes() -> Iterator[None]:
    """Turn the reference's own exceptions into outcomes of the protocol."""
    try:
        yield
    except Rejection as rejection:
        first = next(entry for entry in rejection.diagnostics if entry.severity == "error")
        told = [_diagnostic(entry) for entry in rejection.diagnostics]
        raise Refusal(first.category, first.phase, first.message, told) from None
    except UnsupportedConstruct as construct:
        raise NotSupported(construct.feature) from None
    except InputMismatch as mismatch:
        raise Refusal("types", "call", str(mismatch)) from None


def _find(modules: Sequence[Module], function: str) -> tuple[Module, str]:
    """The module and name of `function` or `module.function`."""
    owner, _, name = function.rpartition(".")
    found = [module for module in modules if name in module.functions and owner in ("", module.name)]
    if len(found) != 1:
        names = tuple(f"{module.name}.{each}" for module in modules for each in module.functions)
        raise Refusal("types", "call", str(UnknownFunction(function, names)))
    return found[0], name


def _diagnostic(entry: diagnostics.Diagnostic) -> Diagnostic:
    span = asdict(entry.span)
    return Diagnostic(
        entry.category,
        entry.message,
        entry.severity,
        **span,
        operands=entry.operands,
        requirement=entry.requirement or None,
        remedy=entry.remedy or None,
        clause=entry.clause or None,
    )


def _function(function: Function) -> dict[str, Any]:
    return {
        "name": function.name,
        "arguments": [str(value.type) for value in function.parameters],
        "results": [str(result) for result in function.results],
        "operations": [_operation(instruction) for instruction in function.body.instructions],
    }


def _operation(instruction: Instruction) -> dict[str, Any]:
    return {
        "name": instruction.operation.name,
        "operands": [f"%{value.name}" for value in instruction.operands],
        "results": [f"%{value.name}" for value in instruction.results],
        "operand_types": [str(value.type) for value in instruction.operands],
        "result_types": [str(value.type) for value in instruction.results],
        "attributes": {name: _plain(value) for name, value in instruction.operation.attributes.items()},
    }


def _plain(value: AttributeValue) -> Any:
    if isinstance(value, DType):
        return value.name
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _array(tensor: Tensor) -> Array:
    return Array.from_bits(dtype(tensor.dtype), tensor.shape, tensor.data)


def _tensor(array: Array) -> Tensor:
    return Tensor(array.dtype.name, array.shape, array.to_bits())
