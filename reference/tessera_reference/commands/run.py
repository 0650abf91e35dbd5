"""Running a function from files to files: `tessera-reference run`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..graph.execution import describe
from ..graph.interpreter import Observer
from ..graph.ranks import RankObserver, mesh_in_force
from ..ir.module import Function, Module
from ..ir.targets import Target
from ..ir.types import Tensor, dtype_of
from ..levels.execution import Execution, Options, execute_at, execute_on_mesh_at
from ..numerics.array import Array
from .array_files import BadInput, load, save


@dataclass(frozen=True)
class Assignment:
    """`NAME=FILE`, `NAME@RANK=FILE`, and each with `:bits` behind the name."""

    name: str
    rank: int | None
    bits: bool
    path: str

    @classmethod
    def read(cls, text: str) -> Assignment:
        """What an option says. Raises `BadInput`."""
        found = re.fullmatch(r"([^=@:]+)(?:@([0-9]{1,9}))?(:bits)?=(.+)", text)
        if found is None:
            raise BadInput(f"{text!r} is not of the form NAME=FILE.npy")
        return cls(found[1], None if found[2] is None else int(found[2]), found[3] is not None, found[4])

    @property
    def subject(self) -> str:
        """What is assigned, as the user wrote it."""
        return self.name if self.rank is None else f"{self.name}@{self.rank}"


@dataclass(frozen=True)
class How:
    """At which level of IR, for which target and schedule, and who is told of what happens."""

    level: Execution
    target: Target
    options: Options
    observer: Callable[..., Any] | None = None


def run(module: Module, function: Function, inputs: Sequence[str], outputs: Sequence[str], how: How) -> None:
    """Run a function on the files of `inputs`, and write or print its results. Raises `BadInput` and as `execute`."""
    wanted = [Assignment.read(text) for text in outputs]
    given = [Assignment.read(text) for text in inputs]
    names = _result_names(function)
    _check_outputs(wanted, function, names)
    _check_inputs(given)
    arrays = {each: load(each.name, each.path, each.bits, function) for each in given}
    if any(each.rank is not None for each in (*given, *wanted)):
        results = _on_ranks(module, function, arrays, how)
        ranks = range(len(results))
    else:
        given_arrays = {each.name: array for each, array in arrays.items()}
        results = (execute_at(how.level, module, function.name, given_arrays, how.target, how.options, how.observer),)
        ranks = range(1)
    for each in wanted:
        if (each.rank or 0) not in ranks:
            raise BadInput(f"output {each.subject}: there are ranks 0 to {len(results) - 1}")
        save(results[each.rank or 0][0 if len(names) == 1 else names.index(each.name)], each.path, each.bits)
    if not wanted:
        for rank in ranks:
            _show(names, results[rank], f"@{rank}" * (len(results) > 1))


def _on_ranks(
    module: Module, function: Function, arrays: Mapping[Assignment, Array], how: How
) -> tuple[tuple[Array, ...], ...]:
    """Each rank with its own inputs, and with those that are given for all."""
    count = module.meshes[mesh_in_force(module, function, None)].size
    for each in arrays:
        if each.rank is not None and each.rank >= count:
            raise BadInput(f"input {each.subject}: there are ranks 0 to {count - 1}")
    shared = {each.name: array for each, array in arrays.items() if each.rank is None}
    own: list[dict[str, Array]] = [{} for _ in range(count)]
    for each, array in arrays.items():
        if each.rank is not None:
            own[each.rank][each.name] = array
    inputs = [{**shared, **mine} for mine in own]
    observer = how.observer and _of_every_rank(how.observer)
    return execute_on_mesh_at(how.level, module, function.name, inputs, how.target, how.options, observer=observer)


def _of_every_rank(observer: Observer) -> RankObserver:
    return lambda rank, instruction, results: observer(instruction, results)


def _show(names: Sequence[str], results: Sequence[Array], suffix: str) -> None:
    for name, array in zip(names, results, strict=True):
        print(f"{name}{suffix} {describe(array)}\n{array.values}")


def _check_inputs(given: Sequence[Assignment]) -> None:
    subjects = [each.subject for each in given]
    for subject in subjects:
        if subjects.count(subject) > 1:
            raise BadInput(f"input {subject} is given twice")


def _result_names(function: Function) -> list[str]:
    """What results are called: those of a kernel as its tensor parameters, others by number."""
    if function.kernel:
        return [value.name for value in function.parameters if isinstance(value.type, Tensor)]
    return [f"r{index}" for index in range(len(function.results))]


def _check_outputs(outputs: Sequence[Assignment], function: Function, names: Sequence[str]) -> None:
    for each in outputs:
        if not names or (len(names) > 1 and each.name not in names):
            raise BadInput(f"output {each.name}: {function.name} returns {', '.join(names) or 'nothing'}")
        held = dtype_of(function.results[0 if len(names) == 1 else names.index(each.name)])
        if each.bits and held is not None and held.storage_bytes > 8:
            raise BadInput(f"output {each.name}: there are no integers as wide as its codes")
    if len(names) == 1 and len({each.rank for each in outputs}) < len(outputs):
        raise BadInput(f"{function.name} returns one value, and several outputs are asked for")
