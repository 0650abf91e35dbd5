"""`tessera.graph.call`: another function of the module (LANG-05-03)."""

from typing import Any

from ..ir.dimensions import fits, loosened_all, substituted
from ..ir.operation import Attribute, Hidden, Operands, Refusal, Shown, Signature, operation, require
from ..ir.spelling import did_you_mean
from ..ir.stepwise import StepEnvironment, Steps, Stepwise
from ..ir.types import LAYOUTS, Dim, Type
from ..numerics.array import Array


def callee_of(shown: Shown) -> tuple[str, Signature]:
    """The name and the signature of the function that the attribute `callee` names. Raises `Refusal`."""
    name = str(shown.attributes.get("callee"))
    callee = shown.functions.get(name)
    if callee is None:
        remedy = did_you_mean(name, shown.functions, "@{}")
        raise Refusal("types", f"unknown function @{name}", "a function of this module", "LANG-05-03", remedy)
    return name, callee


@operation("tessera.graph.call", clauses=("LANG-02.3-32", "LANG-05-03"))
class Call(Stepwise):
    """Runs `callee` on the arguments; its results are what the callee's signature gives for these arguments."""

    arguments: Operands[Type]
    callee: Attribute[str]
    returns: Hidden[tuple[Type, ...]]

    layouts = frozenset(LAYOUTS)
    takes_futures = True
    calls = "callee"

    def infer(self) -> tuple[Type, ...]:
        """What the front end found the callee to return."""
        return self.returns

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """What the callee's signature gives for these arguments, in the words of the caller."""
        name, callee = callee_of(shown)
        require(
            not callee.kernel, "types", f"@{name} is a kernel, which is launched, not called", "a func", "AMB-RT-20"
        )
        wanted = tuple(parameter.type for parameter in callee.parameters)
        dims: dict[str, Dim] = {}
        require(
            len(wanted) == len(shown.operands) and all(map(lambda w, o: fits(w, o, dims), wanted, shown.operands)),
            "types",
            f"the arguments are ({', '.join(map(str, shown.operands))})",
            f"those of @{name}: ({', '.join(map(str, wanted))})",
            "LANG-11-01",
        )
        given = tuple(substituted(type_, dims) for type_ in callee.results)
        return {"returns": loosened_all(given, shown.results)}

    def steps(self, *arguments: Array, env: StepEnvironment) -> Steps:
        """The callee's results."""
        return env.call(self.callee, arguments)
