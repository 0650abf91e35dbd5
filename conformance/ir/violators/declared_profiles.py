"""Implementations in which the level of the run overrides a program's declared profile, for some operations.

A run at a lower level than strict allows another order and other approximations (AMB-LANG-44), but not in a function
that declares otherwise (AMB-LANG-111). Each has the defect of another violator, in such runs only.
"""

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import ReferenceAdapter

from . import activations, fourier, functions, movement_rules, normalization, numerics, products, reductions, stateful

FAST = ("fast",)
BELOW_STRICT = ("fast", "deterministic")


class Unheeding(ReferenceAdapter):
    """The reference, changed in runs of some levels, whatever the program declares."""

    def __init__(self, change, levels, where):
        super().__init__()
        self.change, self.levels, self.where = change, levels, where

    def language_execute(self, *, source, function, inputs, level="strict", **request):
        """Return the results of a function; if they are changed, always by Graph IR."""
        given = {"source": source, "function": function, "inputs": inputs, "level": level, **request}
        if level not in self.levels or not self.where(given):
            return super().language_execute(**given)
        with self.change.broken() as changed:
            assert isinstance(changed, ReferenceAdapter)
            return changed.language_execute(**given | {"at": "graph"})


def everywhere(given):
    """True for every program."""
    return True


def unheeded(name, clause, description, change, levels=FAST, where=everywhere):
    """Return a violation with a change that the level of the run permits and the program does not."""
    return replaced(clause, description, lambda: Unheeding(change, levels, where), name=name)


def of(module, name):
    """Return the violator of a module by its name."""
    lists = [value for value in vars(module).values() if isinstance(value, list)]
    return next(
        violation
        for values in lists
        for violation in values
        if isinstance(violation, Violation) and violation.name == name
    )


def fold():
    """Return the violator with sums from left to right."""
    return of(reductions, "fold")


def blocks():
    """Return the violator with products in blocks."""
    return of(products, "blocked_product")


ORDER = [
    unheeded("products", "LANG-10-06", "adds strict products in blocks in a fast run", blocks()),
    unheeded("log_sum_exp", "LANG-10-06", "computes strict log-sum-exp in fp64 in a fast run",
             of(reductions, "log_sum_exp_in_fp64")),
    unheeded("softmax", "LANG-10-06", "adds up strict softmax from left to right in a fast run",
             of(numerics, "folded_softmax")),
    unheeded("norms", "LANG-10-06", "takes the variance from two sums in a fast run", of(normalization, "uncentred")),
    unheeded("rms_norms", "LANG-10-06", "divides by a rounded root in a fast run", of(normalization, "rms_divided")),
    unheeded("attention", "LANG-10-06", "divides strict attention at its end in a fast run",
             of(normalization, "divided_at_the_end")),
    unheeded("channels", "LANG-10-06", "adds strict channels last axis first in a fast run",
             of(stateful, "channel_order")),
    unheeded("updates", "LANG-10-06", "adds strict updates backwards in a fast run",
             of(movement_rules, "updates_backwards")),
    unheeded("transforms", "LANG-10-06", "adds strict transforms from left to right in a fast run",
             of(fourier, "folded_transform")),
    unheeded("helpers", "LANG-10-06", "adds in another order in functions that a strict one calls", fold(),
             BELOW_STRICT, lambda given: str(given["source"]).count("func ") > 1),
    unheeded("blocks", "LANG-10-06", "keeps a block's profile for products alone", fold(), BELOW_STRICT,
        lambda given: "numerics.profile(" in given["source"]),
    unheeded("lower_levels", "LANG-10-06", "loses the profile below Graph IR", blocks(), BELOW_STRICT,
        lambda given: given.get("at", "graph") not in ("graph", "native")),
    unheeded("deterministic_products", "LANG-10-05", "adds deterministic products in blocks in a fast run", blocks()),
    unheeded("deterministic_norms", "LANG-10-05", "divides by a rounded root in a fast run",
             of(normalization, "divided")),
]  # fmt: skip

APPROXIMATIONS = [
    *(
        unheeded(f"function_{name}", "LANG-10-11", f"takes a fast {name} in a fast run", of(functions, f"libm_{name}"))
        for name in ("exp", "sin", "erf", "pow")
    ),
    unheeded("narrow_functions", "LANG-10-11", "truncates strict functions of narrow types in a fast run",
             of(functions, "truncated")),
    unheeded("activations", "LANG-10-11", "takes a fast exponential for strict sigmoids in a fast run",
             of(activations, "approximate_exp")),
    unheeded("exponentials", "LANG-10-11", "takes a fast exponential for strict softmax in a fast run",
             of(numerics, "approximate_exponential")),
    unheeded("optimizers", "LANG-10-11", "adds eps under the root of a strict step in a fast run",
             of(stateful, "eps_inside")),
    unheeded("deterministic_function", "LANG-10-07", "takes a fast exponential for a deterministic one in a fast run",
             of(functions, "libm_exp")),
]  # fmt: skip
