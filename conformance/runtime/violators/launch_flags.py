"""Flags that are refused, ignored or kept, launches that are not deterministic (runtime spec, 4.7, 6 and 18)."""

from itertools import count

from tessera_conformance.strength import Around
from tessera_reference.abi.status import LaunchFlag
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.matmul import matmul
from tessera_reference.runtime.launches import LaunchWork

from .changes import INVALID, UNSUPPORTED, broken, executing, nudged, refusing, result
from .launches import configured

LAUNCH = "tessLaunch"


def sticking(usual):
    def policy(self, module=None, deterministic_launch=False):
        governing = usual(self, module, deterministic_launch)
        if deterministic_launch:
            self.policy = governing
        return governing

    return policy


NUMBERS = count()


def varies(clause, name, description, bound):
    """Return a violation whose numbers differ by a bit between launches, unless a launch must be deterministic."""

    def varying(usual):
        def executed(self, *arguments):
            written = usual(self, *arguments)
            return written if bound(self) or next(NUMBERS) % 2 else {name: nudged(x) for name, x in written.items()}

        return executed

    return executing(clause, name, description, Around(varying))


def products_backwards(self, executable, rank, arguments, right=LaunchWork._executed):
    written = dict(right(self, executable, rank, arguments))
    given = [argument for name, argument in arguments.items() if name not in written]
    shapes = [array.shape for array in (*given, *written.values())]
    if len(given) == 2 and shapes[-1:] == [(*shapes[0][:-1], shapes[1][-1])] and len(shapes[0]) == 2:
        a, b = given
        reversed_a, reversed_b = Array(a.dtype, a.values[:, ::-1]), Array(b.dtype, b.values[::-1])
        written = dict.fromkeys(written, matmul(reversed_a, reversed_b))
    return written


VIOLATORS = [
    *(refusing(clause, f"no_{flag.name.lower()}", f"takes {flag.name} for an invalid value", LAUNCH,
        lambda given, flag=flag: given["cfg"]["flags"] & flag, INVALID)
        for clause, flag in (("RT-06-16", LaunchFlag.TESS_LAUNCH_CAPTURE),
            ("RT-06-17", LaunchFlag.TESS_LAUNCH_PERSISTENT), ("RT-06-18", LaunchFlag.TESS_LAUNCH_LOW_LATENCY))),
    refusing("RT-06-19", "no_combination", "supports no combination", LAUNCH,
        lambda given: given["cfg"]["flags"].bit_count() > 1, UNSUPPORTED),
    configured("RT-06-19", "last_flag", "heeds one flag of several",
        lambda cfg: {"flags": 1 << cfg["flags"].bit_length() >> 1} if 0 < cfg["flags"] < 16 else {}),
    executing("RT-06-04", "products_backwards", "adds the terms of a launched product from the last to the first",
        products_backwards),
    broken("RT-06-09", "sticking", "keeps to the flag afterwards", "runtime.contexts.Context.governing",
        Around(sticking)),
    varies("RT-04.7-10", "bound_by_flag", "is deterministic under the flag only",
        lambda work: work.flags & LaunchFlag.TESS_LAUNCH_DETERMINISTIC),
    varies("RT-06-04", "never_bound", "has other bits on every run", lambda work: False),
    varies("RT-03-01", "bound_when_stable", "is deterministic where reductions are stable only",
        lambda work: work.stream.mesh.context.policy and work.stream.mesh.context.policy.stableReductions),
    broken("RT-18-01", "extents_backwards", "takes extents in the opposite order", "runtime.calls.extents_of",
        result(lambda extents: dict(zip(extents, reversed(list(extents.values())), strict=True)))),
]  # fmt: skip
