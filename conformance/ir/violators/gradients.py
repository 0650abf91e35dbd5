"""Wrong differentiation: seeds, contributions, loops, branches, calls (language spec, 5.2, 5.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_conformance.strength import Violation, replaced, without_refusals
from tessera_reference.adapter import make
from tessera_reference.graph import control, grad, interpreter
from tessera_reference.graph import control as call
from tessera_reference.graph import grad as grad_module
from tessera_reference.graph.grad import Executed, Grad, Tape
from tessera_reference.levels import texts
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.rounding import cast

from .changes import changed
from .language_syntax import refuses

GRADIENTS, DECLARED = "LANG-05.5-01", "LANG-05.2-06"
USUAL, TOTAL, FILLED = grad.gradients, grad._total, grad._filled


def differentiates(name: str, description: str, gradients: Callable[..., Any], clause: str = GRADIENTS) -> Violation:
    """Return a violation with another backward pass."""
    return changed(clause, name, description, (interpreter, "gradients", gradients), only=["grad"])


# Seeds and results


def zero_for_itself(tape: Tape, run: Any, y: Array, wrt: tuple[Array, ...], location: Any) -> Any:
    found = yield from USUAL(tape, run, y, wrt, location)
    return tuple(FILLED(x, 0) if x is y else gradient for x, gradient in zip(wrt, found, strict=True))


def first_only(tape: Tape, run: Any, y: Array, wrt: tuple[Array, ...], location: Any) -> Any:
    first, *others = yield from USUAL(tape, run, y, wrt, location)
    return (first, *(FILLED(other, 0) for other in others))


def ones_for_independent(tape: Tape, run: Any, y: Array, wrt: tuple[Array, ...], location: Any) -> Any:
    found = yield from USUAL(tape, run, y, wrt, location)
    return tuple(gradient if gradient.values.any() else FILLED(gradient, 1) for gradient in found)


def averaging(like: Array, number: int) -> Array:
    filled = FILLED(like, number)
    return Array(like.dtype, filled.values / max(like.values.size, 1)) if like.dtype.kind == "float" else filled


def too_large(tape: Tape, run: Any, y: Array, wrt: tuple[Array, ...], location: Any) -> Any:
    found = yield from USUAL(tape, run, y, wrt, location)
    scaled = (Array(array.dtype, array.values * array.values.dtype.type(1 + 2.0**-15)) for array in found)
    return tuple(cast(array, array.dtype) for array in scaled)


SEEDS = [
    differentiates("zero_for_itself", "has no gradient of an operand itself", zero_for_itself),
    differentiates("first_operand_only", "differentiates by the first operand only", first_only, DECLARED),
    differentiates("ones_for_independent", "has ones where nothing depends", ones_for_independent),
    changed(GRADIENTS, "seed_of_the_mean", "differentiates the mean of the elements",
            (grad, "_filled", averaging), only=["grad"]),
    changed(GRADIENTS, "seed_of_two", "starts from 2", (grad, "_filled", lambda like, number:
            FILLED(like, 2 * number)), only=["grad"]),
    differentiates("gradients_a_little_off", "has gradients that are too large by 2**-15", too_large),
]  # fmt: skip


# Contributions


def totals(name: str, description: str, choose: Callable[[list[Array]], list[Array]]) -> Violation:
    """Return a violation that adds only some contributions, the last use first, in some order."""

    def total(run: Any, x: Array, contributions: dict[int, list[Array]], location: Any) -> Any:
        found = contributions.get(id(x), [])
        chosen = {**contributions, id(x): choose(found)} if len(found) > 1 else contributions
        result = yield from TOTAL(run, x, chosen, location)
        contributions[id(x)] = [result]
        return result

    return changed(GRADIENTS, name, description, (grad, "_total", total), only=["grad"])


def since_the_last(self: Tape, arrays: Any) -> Any:
    first = max((self._produced.get(id(array), 0) for array in arrays), default=0)
    return tuple(self._entries[0 if self._communicates else first :])


SINCE_THE_LAST = changed(
    GRADIENTS, "since_the_last", "goes back to the last of the operands", (Tape, "since", since_the_last), only=["grad"]
)
CONTRIBUTIONS = [
    totals("last_use_only", "keeps the contribution of the last use", lambda found: found[:1]),
    totals("two_uses_only", "keeps the contributions of two uses", lambda found: found[:2]),
    totals("many_from_the_last", "adds four contributions or more from the last use", lambda found:
           found[::-1] if len(found) > 3 else found),
    totals("first_and_last", "adds the last contribution before those between", lambda found:
           [*found[1:-1], found[0], found[-1]]),
]  # fmt: skip


# The backward pass


def on_tape(name: str, description: str, keep: Callable[[list[Executed]], list[Executed]]) -> Violation:
    """Return a violation with a backward pass over part of the tape."""

    def gradients(tape: Tape, run: Any, y: Array, wrt: tuple[Array, ...], location: Any) -> Any:
        part = Tape()
        for entry in keep(list(tape.since(()))):
            part.add(entry)
        return USUAL(part, run, y, wrt, location)

    return differentiates(name, description, gradients)


def last_of_each(tape: list[Executed]) -> list[Executed]:
    """Return the last execution of each instruction."""
    last = {(entry.location, entry.operation.name): id(entry) for entry in tape}
    return [entry for entry in tape if id(entry) in last.values()]


def off_tape(usual: Callable[..., Any]) -> Callable[..., Any]:
    """Return steps that are not recorded, so that their results have no operands."""

    def steps(self: Any, *operands: Any, env: Any) -> Any:
        kept = env.interpreter.tape
        env.interpreter.tape = None if kept is None else Tape()
        results = yield from usual(self, *operands, env=env)
        env.interpreter.tape = kept
        return results

    return steps


def forgetful(name: str, description: str, operation: Any) -> Violation:
    """Return a violation in which operations in regions or called functions have no gradient."""
    return changed(GRADIENTS, name, description, (operation, "steps", off_tape(operation.steps)), only=["grad"])


def without_trace(tape: Tape, run: Any, y: Array, wrt: tuple[Array, ...], location: Any) -> Any:
    found = yield from USUAL(tape, run, y, wrt, location)
    return tuple(Array(gradient.dtype, gradient.values) for gradient in found)


THE_WAY = [
    on_tape("last_turn_only", "differentiates the last turn of a loop only", last_of_each),
    on_tape("three_steps", "forgets all but the last three steps", lambda tape: tape[-3:]),
    forgetful("no_way_through_branches", "has no gradient of what a branch computes", control.If),
    forgetful("no_way_through_loops", "has no gradient of what a for computes", control.For),
    forgetful("no_way_through_whiles", "has no gradient of what a while computes", control.While),
    forgetful("no_way_through_calls", "has no gradient of what a function computes", call.Call),
    differentiates("constant_gradients", "takes gradients for constants", without_trace),
    refuses("no_second_derivatives", GRADIENTS, "has no gradients of gradients", r"op\.grad\(op\.grad", "types"),
    refuses("no_gradients_in_loops", GRADIENTS, "has no gradients in loops", r"for [^{]*\{[^}]*op\.grad", "types"),
]


# Refusals


REFUSALS = [
    replaced(DECLARED, "differentiates whatever dtype, by nothing too", make,
             *without_refusals(grad_module, lambda source: True), name="anything_differentiable"),
    refuses("no_gradient_of_a_tensor", DECLARED, "differentiates scalars only", r"let Y: tensor<2xfp32> = A", "types"),
    changed(DECLARED, "no_grad_in_the_ir", "has another name for it in its IR", (Grad, "name", "tessera.graph.vjp")),
]  # fmt: skip

gradient_through_a_kernel = replaced(
    "LANG-05.5-02", "verifies a gradient through a kernel", make, (texts, "missing_adjoints", lambda module: [])
)
