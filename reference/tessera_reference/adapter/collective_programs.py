"""The methods of the reference for programs of the dialect of collectives: read, execute, plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tessera_conformance.tensors import Tensor

from ..collectives.graph import topology_of
from ..collectives.planning import Options, Unit, groups_of, plan_function, run_plan, time_plan
from ..collectives.programs import find_function, require_runnable, run_program
from ..collectives.queues import Slot
from ..graph.execution import bind_on_mesh
from ..ir.targets import DEFAULT, target_of
from ..ir.text import print_module
from .levels import function_message
from .outcomes import array, outcomes, tensor
from .requests import checked
from .session_state import SessionState
from .statuses import statuses

__all__ = ["CollectiveProgramMethods"]

TARGET = target_of(DEFAULT)


class CollectiveProgramMethods(SessionState):
    """Texts of Graph IR in which collectives yield futures."""

    @checked
    def collectives_read(self, *, text: str) -> dict[str, Any]:
        """What a text says, and the text that says the same."""
        with outcomes():
            modules = self.compiler.text("graph", text, TARGET)
        functions = [function_message(function) for module in modules for function in module.functions.values()]
        return {"functions": functions, "text": "".join(print_module(module) for module in modules)}

    @checked
    def collectives_execute(
        self,
        *,
        text: str,
        function: str,
        ranks: Sequence[Mapping[str, Tensor]],
        mesh: str | None = None,
        level: str = "strict",
    ) -> dict[str, Any]:
        """The results of a function on every rank; fast is given the deterministic bits."""
        with statuses(), outcomes():
            module, found = find_function(self.compiler.text("graph", text, TARGET), function)
            inputs = [{key: array(given) for key, given in rank.items()} for rank in ranks]
            results = run_program(module, found, inputs, mesh, level)
        return {"ranks": [{"outputs": [tensor(result) for result in each]} for each in results]}

    @checked
    def collectives_plan(
        self,
        *,
        text: str,
        function: str,
        tile: int | None = None,
        max_inflight: int | None = None,
        depth: int | None = None,
    ) -> dict[str, Any]:
        """The units of a function, in order."""
        with statuses(), outcomes():
            module, found = find_function(self.compiler.text("graph", text, TARGET), function)
            return {
                "units": [
                    _unit(each) for each in plan_function(module, found, Options(tile, max_inflight, depth)).units
                ]
            }

    @checked
    def collectives_execute_plan(
        self,
        *,
        text: str,
        function: str,
        ranks: Sequence[Mapping[str, Tensor]],
        mesh: str | None = None,
        level: str = "strict",
        tile: int | None = None,
        max_inflight: int | None = None,
        depth: int | None = None,
        seed: int | None = None,
        topology: str | None = None,
        picoseconds: int = 0,
    ) -> dict[str, Any]:
        """The results of the units of a plan on every rank, what happened in which order, and when."""
        with statuses(), outcomes():
            module, found = find_function(self.compiler.text("graph", text, TARGET), function)
            require_runnable(module, found, lossy=level == "fast")
            inputs = [{key: array(given) for key, given in rank.items()} for rank in ranks]
            running, arguments = bind_on_mesh(module, found, inputs, mesh)
            plan = plan_function(module, found, Options(tile, max_inflight, depth))
            groups = groups_of(plan, module, found, running)
            results, progress = run_plan(module, found, plan, arguments, groups, seed, level)
            times = {}
            if topology is not None:
                run = time_plan(plan, groups, len(ranks), topology_of(topology), picoseconds, max_inflight)
                times = {"timeline": [_slot(each) for each in run.slots], "duration": run.duration}
        outputs = [{"outputs": [tensor(result) for result in each]} for each in results]
        order = [asdict(each) for each in progress]
        return {"ranks": outputs, "units": [_unit(each) for each in plan.units], "order": order, **times}


def _slot(slot: Slot) -> dict[str, Any]:
    """A slot of a unit, by its number."""
    unit = int(slot.id.partition("/")[0])
    return {"unit": unit, "queue": slot.queue, "device": slot.device, "start": slot.start, "end": slot.end}


def _unit(unit: Unit) -> dict[str, Any]:
    """A unit with the members that it has."""
    members = {name: value for name, value in asdict(unit).items() if value is not None}
    if unit.chunk is not None:
        members["chunk"] = {"first": unit.chunk[0], "count": unit.chunk[1]}
    return {name: value for name, value in members.items() if name not in ("parts", "folds") or value}
