"""Replays whose launches have other arguments than those captured (runtime specification, 12)."""

from tessera_conformance.strength import violates
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.runtime.launches import LaunchWork, scalars_of, tensors_of
from tessera_reference.runtime.streams import Graph, capture_of

from .changes import afterwards, answering


class KeepsThePointer(ReferenceAdapter):
    """A runtime that keeps the address of a captured launch's parameter buffer, and may read it again."""

    first_read = 1
    """The number of the replay from which on it is read again."""

    def __init__(self):
        super().__init__()
        self.buffers, self.replays = {}, {}

    def session_reset(self):
        self.buffers, self.replays = {}, {}
        return super().session_reset()

    def runtime_tessLaunch(self, **arguments):  # noqa: N802
        answer = super().runtime_tessLaunch(**arguments)
        capture = capture_of(self.runtime.captures, self.runtime.stream(arguments["stream"]))
        if capture is not None and isinstance(arguments["argBuffer"], int):
            work = capture.nodes[-1].work
            self.buffers[work] = arguments["argBuffer"], arguments["argSize"]
        return answer

    def runtime_tessxGraphLaunch(self, *, graph, stream):  # noqa: N802
        self.replays[graph] = self.replays.get(graph, 0) + 1
        if self.replays[graph] >= self.first_read:
            for node in self.runtime.handles.find("graph", Graph, graph).nodes:
                if isinstance(node.work, LaunchWork) and node.work in self.buffers:
                    self.read_again(node.work, *self.buffers[node.work])
        return super().runtime_tessxGraphLaunch(graph=graph, stream=stream)

    def read_again(self, work, pointer, size):
        """Replace the arguments of captured work."""
        buffer = bytes.fromhex(self.runtime_tessxHostRead(hostPtr=pointer, bytes=size)["data"])
        entry = next(iter(work.executables.values())).entry
        pointers, work.scalars = scalars_of(entry, buffer)
        work.tensors = tensors_of(entry, pointers, {}, self.runtime.stream(work.stream.handle))


@violates("RT-12-08", "reads the parameter buffer of a captured launch when it is replayed")
class ReadAtEachReplay(KeepsThePointer):
    """A runtime that reads them at each replay."""


@violates("RT-12-09", "reads the parameter buffer of a captured launch anew from the second replay on")
class ReadAtTheSecondReplay(KeepsThePointer):
    first_read = 2


def with_last_scalars(adapter, call, given):
    queued = [work for work in adapter.runtime.stream(given["stream"]).queued if isinstance(work, LaunchWork)]
    for _, graph in adapter.runtime.handles.live("graph") if queued else ():
        for work in (node.work for node in graph.nodes if isinstance(node.work, LaunchWork)):
            if work.name == queued[-1].name and regions(work) != regions(queued[-1]):
                work.scalars = queued[-1].scalars


def regions(work):
    return {argument.region for argument in work.tensors.values()}


SCALARS = answering("RT-12-08", "ScalarsOfTheKernel", "replays with the scalars that the kernel was last launched with",
                    "tessLaunch", afterwards(with_last_scalars))  # fmt: skip
