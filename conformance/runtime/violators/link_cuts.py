"""Links that fail during a collective of the runtime: unnoticed, fatal, or with other bits (AMB-RT-182)."""

from unittest import mock

from tessera_reference.abi.status import Failure
from tessera_reference.numerics.array import Array
from tessera_reference.runtime.collectives import CollectiveWork

from .changes import broken

DURATION = CollectiveWork._duration


def launch_failed(self, group):
    with mock.patch.object(self.stream.mesh.context, "timeout", None):
        return DURATION(self, group)


def lost(self, group, contributions, right=CollectiveWork._combined):
    results = right(self, group, contributions)
    cut = self.stream.mesh.context.faults.link_cuts(0)
    return {rank: cleared(array) for rank, array in results.items()} if cut else results


def cleared(array):
    size = array.dtype.storage_bytes
    return Array.from_bits(array.dtype, array.shape, array.to_bits()[:-size] + bytes(size))


def silent(self, group):
    try:
        return DURATION(self, group)
    except Failure as failure:
        raise Failure(failure.status, failure.function, "no way", "a way") from None


VIOLATIONS = [
    broken("RT-07-07", "timeout_forgotten", "fails a launch where a timeout is configured",
        "runtime.collectives.CollectiveWork._duration", launch_failed),
    broken("RT-07-07", "link_cut_loses_bits", "has other bits where a link fails",
        "runtime.collectives.CollectiveWork._combined", lost),
    broken("RT-07-07", "failed_link_not_named", "does not name the failed link",
        "runtime.collectives.CollectiveWork._duration", silent),
    broken("RT-07-07", "any_link", "accepts a link that the machine does not have",
        "runtime.contexts.require_known", lambda function, what, given, known: None),
]  # fmt: skip
