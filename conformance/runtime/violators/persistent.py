"""Persistent kernels that do not stay, do not end, or stay without the flag (runtime spec 6, 15; AMB-RT-65)."""

from tessera_reference.abi.status import LaunchFlag
from tessera_reference.runtime import calls
from tessera_reference.runtime.streams import Stream

from .changes import broken

PERSISTENT = LaunchFlag.TESS_LAUNCH_PERSISTENT


def forgets_to_end(self, right=Stream.end_residents):
    kept = list(self.mesh.resident)
    right(self)
    self.mesh.machine.settle(lambda: not self.queued)
    self.mesh.resident.extend(kernel for kernel in kept if kernel not in self.mesh.resident)


def persistent_if(when):
    """Return a substitute that makes launches persistent."""

    def queue_launch(state, work):
        if when(work):
            work.flags |= PERSISTENT
        QUEUE(state, work)

    return queue_launch


QUEUE = calls.queue_launch
KNOWN = set()
"""The kernels, with their meshes, that were persistent before."""


def persistent_before(work):
    kernel = (id(work.stream.mesh), work.name)
    if work.flags & PERSISTENT:
        KNOWN.add(kernel)
    return kernel in KNOWN


OTHERWISE = [
    broken("RT-06-13", "forgets_to_end", "tells of persistent kernels that have ended",
        "runtime.streams.Stream.end_residents", forgets_to_end),
    broken("RT-06-13", "no_room_left", "takes more persistent kernels than a device can hold beside other work",
        "runtime.calls.require_place", lambda *of: None),
    broken("RT-15-04", "persistent_quick", "keeps kernels resident that ask for low latency",
        "runtime.calls.queue_launch", persistent_if(lambda work: work.flags & LaunchFlag.TESS_LAUNCH_LOW_LATENCY)),
    broken("RT-15-04", "persistent_since", "keeps a kernel resident that was persistent before",
        "runtime.calls.queue_launch", persistent_if(persistent_before)),
]  # fmt: skip
