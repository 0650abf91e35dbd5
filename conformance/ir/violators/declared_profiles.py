"""Implementations in which the level of the run overrides a program's declared profile, for some operations.

A run at a lower level than strict allows another order and other approximations (AMB-LANG-44), but not in a function
that declares otherwise (AMB-LANG-111). Each has the defect of another violator, in such runs only.
"""

from functools import partial

from tessera_conformance.strength import Violation

from . import activations, fourier, functions, movement_rules, normalization, numerics, products, reductions, stateful
from .changes import wrapped

FAST, BELOW_STRICT = ("fast",), ("fast", "deterministic")


def unheeded(clause, name, description, module, change, levels=FAST, where=lambda given: True):
    """Return a violation with a change, a violator of another module, in runs that permit it as the program does not.

    `where` limits the programs: it takes the parameters of a call.
    """
    lists = [value for value in vars(module).values() if isinstance(value, list)]
    violators = [entry for values in lists for entry in values if isinstance(entry, Violation)]
    found = next(violator for violator in violators if violator.name == change)

    def execute(usual, self, *, level="strict", **request):
        if level not in levels or not where(request):
            return usual(self, level=level, **request)
        with found.broken() as changed:  # always by Graph IR
            return usual(changed, level=level, **request | {"at": "graph"})

    return wrapped(clause, name, description, "adapter.ReferenceAdapter.language_execute", execute)


order, fast = partial(unheeded, "LANG-10-06"), partial(unheeded, "LANG-10-11")

PROFILES = [
    order("products", "adds strict products in blocks in a fast run", products, "blocked_product"),
    order("log_sum_exp", "computes strict log-sum-exp in fp64 in a fast run", reductions, "log_sum_exp_in_fp64"),
    order("softmax", "adds up strict softmax from left to right in a fast run", numerics, "folded_softmax"),
    order("norms", "takes the variance from two sums in a fast run", normalization, "uncentred"),
    order("rms_norms", "divides by a rounded root in a fast run", normalization, "rms_divided"),
    order("attention", "divides strict attention at its end in a fast run", normalization, "divided_at_the_end"),
    order("channels", "adds strict channels last axis first in a fast run", stateful, "channel_order"),
    order("updates", "adds strict updates backwards in a fast run", movement_rules, "updates_backwards"),
    order("transforms", "adds strict transforms from left to right in a fast run", fourier, "folded_transform"),
    order("helpers", "adds in another order in functions that a strict one calls", reductions, "fold",
        BELOW_STRICT, lambda given: given["source"].count("func ") > 1),
    order("blocks", "keeps a block's profile for products alone", reductions, "fold",
        BELOW_STRICT, lambda given: "numerics.profile(" in given["source"]),
    order("lower_levels", "loses the profile below Graph IR", products, "blocked_product",
        BELOW_STRICT, lambda given: given.get("at", "graph") not in ("graph", "native")),
    unheeded("LANG-10-05", "deterministic_products", "adds deterministic products in blocks in a fast run", products,
        "blocked_product"),
    unheeded("LANG-10-05", "deterministic_norms", "divides by a rounded root in a fast run", normalization, "divided"),
    *(
        fast(f"function_{name}", f"takes a fast {name} in a fast run", functions, f"libm_{name}")
        for name in ("exp", "sin", "erf", "pow")
    ),
    fast("narrow_functions", "truncates strict functions of narrow types in a fast run", functions, "truncated"),
    fast("activations", "takes a fast exponential for strict sigmoids in a fast run", activations, "approximate_exp"),
    fast("exponentials", "takes a fast exponential for strict softmax in a fast run", numerics,
        "approximate_exponential"),
    fast("optimizers", "adds eps under the root of a strict step in a fast run", stateful, "eps_inside"),
    unheeded("LANG-10-07", "deterministic_function", "takes a fast exponential for a deterministic one in a fast run",
        functions, "libm_exp"),
]  # fmt: skip
