"""Wrong differentiation: seeds, contributions, loops, branches, calls (language spec, 5.2, 5.5)."""

from tessera_conformance.strength import replaced, without_refusals
from tessera_reference.adapter import make
from tessera_reference.graph import grad
from tessera_reference.graph.grad import Tape
from tessera_reference.numerics.array import Array

from .changes import around, changed
from .language_syntax import refuses

GRADIENTS, DECLARED = "LANG-05.5-01", "LANG-05.2-06"


def differentiates(name, description, place, change):
    """Return a violation with another part of the backward pass; `change` takes the usual one, then its arguments."""
    return changed(GRADIENTS, name, description, (f"graph.{place}", around(change)), only=["grad"])


def zero_for_itself(usual, tape, run, y, wrt, location):
    found = yield from usual(tape, run, y, wrt, location)
    return tuple(grad._filled(x, 0) if x is y else gradient for x, gradient in zip(wrt, found, strict=True))


def without_trace(usual, *arguments):
    found = yield from usual(*arguments)
    return tuple(Array(gradient.dtype, gradient.values) for gradient in found)


def choosing(choose):
    """Return a total of some contributions only, the last use first, in some order."""

    def total(usual, run, x, contributions, location):
        found = contributions.get(id(x), [])
        chosen = {**contributions, id(x): choose(found)} if len(found) > 1 else contributions
        result = yield from usual(run, x, chosen, location)
        contributions[id(x)] = [result]
        return result

    return total


def since_the_last(usual, self, arrays):
    first = max((self._produced.get(id(array), 0) for array in arrays), default=0)
    return tuple(self._entries[0 if self._communicates else first :])


def off_tape(usual, self, *operands, env):
    """Steps that are not recorded, so that their results have no operands."""
    kept = env.interpreter.tape
    env.interpreter.tape = None if kept is None else Tape()
    results = yield from usual(self, *operands, env=env)
    env.interpreter.tape = kept
    return results


PASSES = [
    differentiates("zero_for_itself", "has no gradient of an operand itself", "interpreter.gradients", zero_for_itself),
    differentiates("since_the_last", "goes back to the last of the operands", "grad.Tape.since", since_the_last),
    differentiates("many_from_the_last", "adds four contributions or more from the last use", "grad._total",
        choosing(lambda found: found[::-1] if len(found) > 3 else found)),
    differentiates("first_and_last", "adds the last contribution before those between", "grad._total",
        choosing(lambda found: [*found[1:-1], found[0], found[-1]])),
    *(
        differentiates(f"no_way_through_{name}", f"has no gradient of what a {what} computes", f"control.{place}.steps",
            off_tape)
        for name, what, place in (("branches", "branch", "If"), ("loops", "for", "For"), ("whiles", "while", "While"),
            ("calls", "function", "Call"))
    ),
    differentiates("constant_gradients", "takes gradients for constants", "interpreter.gradients", without_trace),
    refuses(GRADIENTS, "no_second_derivatives", "has no gradients of gradients", r"op\.grad\(op\.grad", "types"),
    refuses(GRADIENTS, "no_gradients_in_loops", "has no gradients in loops", r"for [^{]*\{[^}]*op\.grad", "types"),
    replaced(DECLARED, "differentiates whatever dtype, by nothing too", make,
             *without_refusals(grad, lambda source: True), name="anything_differentiable"),
    changed(DECLARED, "no_grad_in_the_ir", "has another name for it in its IR",
        ("graph.grad.Grad.name", "tessera.graph.vjp")),
]  # fmt: skip
