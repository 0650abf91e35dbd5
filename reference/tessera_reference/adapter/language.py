"""The language methods of the reference: parse, verify, lower, execute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.protocol import diagnostic_message
from tessera_conformance.tensors import Tensor

from ..graph.differentiability import missing_adjoints
from ..graph.execution import UnknownFunction, execute, execute_on_mesh
from ..ir.diagnostics import Rejection
from ..ir.module import Function, Instruction, Module
from ..ir.operation import AttributeValue
from ..ir.text import print_module
from ..ir.text_reader import read_modules
from ..language import CompiledModule, compile_source, parse, syntax
from ..numerics.attributes import text
from ..numerics.formats import DType
from .outcomes import array, diagnostic, outcomes, tensor
from .reading import LEVEL, read_by, tensors_by_name, tensors_by_rank

__all__ = ["LanguageMethods"]

KINDS = {
    syntax.KernelDecl: "kernel",
    syntax.FunctionDecl: "func",
    syntax.TypeDecl: "type",
    syntax.Let: "const",
    syntax.MeshDecl: "mesh",
}


class LanguageMethods:
    """Answers for the language as far as the reference goes."""

    @read_by(source=text)
    def language_parse(self, *, source: str) -> dict[str, Any]:
        """The declarations of each module."""
        with outcomes():
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

    @read_by(source=text)
    def language_verify(self, *, source: str) -> dict[str, Any]:
        """The warnings of a legal program."""
        compiled = self._compile(source)
        return {"warnings": [diagnostic_message(diagnostic(entry)) for entry in compiled.warnings]}

    @read_by(text=text)
    def language_verify_ir(self, *, text: str) -> dict[str, Any]:
        """The warnings of Graph IR that is legal, of which there are none."""
        with outcomes():
            for module in read_modules(text):
                missing = missing_adjoints(module)
                if missing:
                    raise Rejection(missing)
        return {"warnings": []}

    @read_by(source=text, to=text)
    def language_lower(self, *, source: str, to: str) -> dict[str, Any]:
        """The Graph IR of every function."""
        if to != "graph":
            raise NotSupported(f"language.lower.{to}")
        modules = self._compile(source).modules
        functions = [_function(function) for module in modules for function in module.functions.values()]
        return {"functions": functions, "text": "".join(print_module(module) for module in modules)}

    @read_by(source=text, function=text, inputs=tensors_by_name, level=LEVEL)
    def language_execute(
        self, *, source: str, function: str, inputs: Mapping[str, Tensor], level: str = "strict"
    ) -> dict[str, Any]:
        """The results of a function, in order; every level is given the strict bits."""
        module, name = _find(self._compile(source).modules, function)
        with outcomes():
            arrays = {key: array(given) for key, given in inputs.items()}
            return {"outputs": [tensor(result) for result in execute(module, name, arrays)]}

    @read_by(source=text, function=text, ranks=tensors_by_rank, mesh=text, level=LEVEL)
    def language_execute_ranks(
        self,
        *,
        source: str,
        function: str,
        ranks: Sequence[Mapping[str, Tensor]],
        mesh: str | None = None,
        level: str = "strict",
    ) -> dict[str, Any]:
        """The results of a function on every rank of a mesh, each with inputs of its own."""
        module, name = _find(self._compile(source).modules, function)
        with outcomes():
            inputs = [{key: array(given) for key, given in rank.items()} for rank in ranks]
            results = execute_on_mesh(module, name, inputs, mesh)
        return {"ranks": [{"outputs": [tensor(result) for result in each]} for each in results]}

    def _compile(self, source: str) -> CompiledModule:
        with outcomes():
            return compile_source(source)


def _find(modules: Sequence[Module], function: str) -> tuple[Module, str]:
    """The module and name of `function` or `module.function`."""
    owner, _, name = function.rpartition(".")
    found = [module for module in modules if name in module.functions and owner in ("", module.name)]
    if len(found) != 1:
        names = tuple(f"{module.name}.{each}" for module in modules for each in module.functions)
        raise Refusal("types", "call", str(UnknownFunction(function, names)))
    return found[0], name


def _function(function: Function) -> dict[str, Any]:
    return {
        "name": function.name,
        "kind": "kernel" if function.kernel else "func",
        "arguments": [str(value.type) for value in function.parameters],
        "results": [str(result) for result in function.results],
        "attributes": {name: _plain(value) for name, value in function.attributes.items()},
        "operations": [_operation(instruction) for instruction in function.body.walk()],
    }


def _operation(instruction: Instruction) -> dict[str, Any]:
    attributes = {**instruction.operation.attributes, **instruction.attributes}
    return {
        "name": instruction.operation.name,
        "operands": [f"%{value.name}" for value in instruction.operands],
        "results": [f"%{value.name}" for value in instruction.results],
        "operand_types": [str(value.type) for value in instruction.operands],
        "result_types": [str(value.type) for value in instruction.results],
        "attributes": {name: _plain(value) for name, value in attributes.items()},
        "effects": sorted(instruction.operation.effects),
        "regions": len(instruction.regions),
    }


def _plain(value: AttributeValue) -> Any:
    if isinstance(value, DType):
        return value.name
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
