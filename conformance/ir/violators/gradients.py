"""Wrong differentiation: seeds, contributions, loops, branches, calls (language spec, 5.2, 5.5)."""

from tessera_conformance.strength import replaced, without_refusals
from tessera_reference.adapter import make
from tessera_reference.graph import control, grad
from tessera_reference.graph import control as call
from tessera_reference.graph import grad as grad_module
from tessera_reference.graph.grad import Tape
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.rounding import cast

from .changes import changed
from .language_syntax import refuses

GRADIENTS, DECLARED = "LANG-05.5-01", "LANG-05.2-06"
USUAL, TOTAL, FILLED = grad.gradients, grad._total, grad._filled


def differentiates(name, description, gradients, clause=GRADIENTS):
    """Return a violation with another backward pass."""
    return changed(clause, name, description, ("graph.interpreter.gradients", gradients), only=["grad"])


# Seeds and results


def zero_for_itself(tape, run, y, wrt, location):
    found = yield from USUAL(tape, run, y, wrt, location)
    return tuple(FILLED(x, 0) if x is y else gradient for x, gradient in zip(wrt, found, strict=True))


def first_only(tape, run, y, wrt, location):
    first, *others = yield from USUAL(tape, run, y, wrt, location)
    return (first, *(FILLED(other, 0) for other in others))


def too_large(tape, run, y, wrt, location):
    found = yield from USUAL(tape, run, y, wrt, location)
    scaled = (Array(array.dtype, array.values * array.values.dtype.type(1 + 2.0**-15)) for array in found)
    return tuple(cast(array, array.dtype) for array in scaled)


SEEDS = [
    differentiates("zero_for_itself", "has no gradient of an operand itself", zero_for_itself),
]  # fmt: skip


# Contributions


def totals(name, description, choose):
    """Return a violation that adds only some contributions, the last use first, in some order."""

    def total(run, x, contributions, location):
        found = contributions.get(id(x), [])
        chosen = {**contributions, id(x): choose(found)} if len(found) > 1 else contributions
        result = yield from TOTAL(run, x, chosen, location)
        contributions[id(x)] = [result]
        return result

    return changed(GRADIENTS, name, description, ("graph.grad._total", total), only=["grad"])


def since_the_last(self, arrays):
    first = max((self._produced.get(id(array), 0) for array in arrays), default=0)
    return tuple(self._entries[0 if self._communicates else first :])


SINCE_THE_LAST = changed(
    GRADIENTS,
    "since_the_last",
    "goes back to the last of the operands",
    ("graph.grad.Tape.since", since_the_last),
    only=["grad"],
)
CONTRIBUTIONS = [
    totals("many_from_the_last", "adds four contributions or more from the last use", lambda found:
           found[::-1] if len(found) > 3 else found),
    totals("first_and_last", "adds the last contribution before those between", lambda found:
           [*found[1:-1], found[0], found[-1]]),
]  # fmt: skip


# The backward pass


def off_tape(usual):
    """Return steps that are not recorded, so that their results have no operands."""

    def steps(self, *operands, env):
        kept = env.interpreter.tape
        env.interpreter.tape = None if kept is None else Tape()
        results = yield from usual(self, *operands, env=env)
        env.interpreter.tape = kept
        return results

    return steps


def forgetful(name, description, operation):
    """Return a violation in which operations in regions or called functions have no gradient."""
    return changed(GRADIENTS, name, description, (operation, "steps", off_tape(operation.steps)), only=["grad"])


def without_trace(tape, run, y, wrt, location):
    found = yield from USUAL(tape, run, y, wrt, location)
    return tuple(Array(gradient.dtype, gradient.values) for gradient in found)


THE_WAY = [
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
    changed(DECLARED, "no_grad_in_the_ir", "has another name for it in its IR",
        ("graph.grad.Grad.name", "tessera.graph.vjp")),
]  # fmt: skip
