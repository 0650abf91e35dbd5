"""The language methods of the reference: parse, verify, lower, execute, at each level of IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.protocol import diagnostic_message
from tessera_conformance.tensors import Tensor

from ..graph.execution import execute_on_mesh, find_function
from ..ir.operation import Module
from ..ir.targets import DEFAULT, TARGETS, Target, target_of
from ..ir.text import print_module
from ..language import CompiledModule, parse, syntax
from ..levels.execution import LEVELS, Execution, Level, Options, execute_at, lower, run_lowered
from ..schedule.lowering import verify_stated_schedules
from .messages import array, checked, diagnostic, function_message, outcomes, tensor
from .session_state import SessionState

TARGET = target_of(DEFAULT)
OPTIONS = Options()

KINDS = {
    syntax.KernelDecl: "kernel",
    syntax.FunctionDecl: "func",
    syntax.TypeDecl: "type",
    syntax.Let: "const",
    syntax.MeshDecl: "mesh",
}


class LanguageMethods(SessionState):
    """The methods of the language, as far as the reference implements it."""

    @checked
    def language_parse(self, *, source: str) -> dict[str, Any]:
        """Return the declarations of each module."""
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

    @checked
    def language_verify(self, *, source: str) -> dict[str, Any]:
        """Return the warnings of a legal program."""
        compiled = self._compile(source)
        with outcomes():
            verify_stated_schedules(compiled.modules, [target_of(name) for name in TARGETS])
        return {"warnings": [diagnostic_message(diagnostic(entry)) for entry in compiled.warnings]}

    @checked
    def language_verify_ir(self, *, text: str, at: Level = "graph", target: Target = TARGET) -> dict[str, Any]:
        """Return the warnings of IR text that is legal at its level, of which there are none."""
        with outcomes():
            from ..levels.texts import require_names

            require_names(self.compiler.text(at, text, target))
        return {"warnings": []}

    @checked
    def language_execute_ir(
        self, *, text: str, function: str, inputs: Mapping[str, Tensor], at: Level, target: Target = TARGET
    ) -> dict[str, Any]:
        """Return the results of a function of IR text, or the buffers of a kernel after its execution."""
        from ..levels.texts import run_text

        with outcomes():
            modules = self.compiler.text(at, text, target)
            arrays = {key: array(value) for key, value in inputs.items()}
            return {"outputs": [tensor(result) for result in run_text(at, modules, function, arrays, target)]}

    @checked
    def language_lower(
        self, *, source: str, to: str, target: Target = TARGET, schedule: Options = OPTIONS
    ) -> dict[str, Any]:
        """Return the IR of every function at a level, or its text for the tools of a vendor."""
        compiled = self._compile(source).modules
        with outcomes():
            if to not in LEVELS:
                return {"functions": [], "text": _emitted(compiled, to, target, schedule)}
            modules = [lower(module, to, target, schedule) for module in compiled]
        functions = [function_message(function) for module in modules for function in module.functions.values()]
        return {"functions": functions, "text": "".join(print_module(module) for module in modules)}

    @checked
    def language_execute(
        self,
        *,
        source: str,
        function: str,
        inputs: Mapping[str, Tensor],
        level: str = "strict",
        at: Execution = "graph",
        target: Target = TARGET,
        schedule: Options = OPTIONS,
    ) -> dict[str, Any]:
        """Return the results of a function, in order, the same bits at each level of IR and of numerics."""
        modules = self._compile(source).modules
        with outcomes():
            module, callee = find_function(modules, function)
            arrays = {key: array(value) for key, value in inputs.items()}
            if at == "graph" or at == "native":
                results = execute_at(at, module, callee.name, arrays, target, schedule)
            else:
                lowered = self.compiler.lowered(module, callee.name, arrays, at, target, schedule)
                results = run_lowered(at, lowered, callee.name, arrays, target)
            return {"outputs": [tensor(result) for result in results]}

    @checked
    def language_execute_ranks(
        self,
        *,
        source: str,
        function: str,
        ranks: Sequence[Mapping[str, Tensor]],
        mesh: str | None = None,
        level: str = "strict",
    ) -> dict[str, Any]:
        """Return the results of a function on every rank of a mesh, each with its own inputs."""
        modules = self._compile(source).modules
        with outcomes():
            module, callee = find_function(modules, function)
            inputs = [{key: array(value) for key, value in rank.items()} for rank in ranks]
            results = execute_on_mesh(module, callee.name, inputs, mesh)
        return {"ranks": [{"outputs": [tensor(result) for result in outputs]} for outputs in results]}

    def _compile(self, source: str) -> CompiledModule:
        with outcomes():
            return self.compiler.program(source)


def _emitted(modules: Sequence[Module], to: str, target: Target, options: Options) -> str:
    from ..ir.targets import OtherVendor
    from ..levels.emission import emit_all

    try:
        return emit_all(modules, to, target, options)
    except OtherVendor as other:
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", str(other)) from None
