"""Other endpoints: words, spelling of frames, orders, sizes, times, and what they notice (host_io specification)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

from tessera_conformance.strength import altered, varies
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.adapter import host_io as adapter_host_io
from tessera_reference.host_io import endpoint, launches, machine
from tessera_reference.host_io import machine as latency
from tessera_reference.host_io.endpoint import Endpoint
from tessera_reference.host_io.frames import ErrorCode, RequestFailed
from tessera_reference.host_io.machine import Branch, Journey, Machine
from tessera_reference.host_io.messages import TensorArgument
from tessera_reference.mesh.engine import Choices, Seeded

from ....ir.variants.features import Without

HOST_IO = ("abi/host-io/*",)
CODES = {code: f"E{number}" for number, code in enumerate(ErrorCode)}
COMPONENTS, DESCRIBED, TASKS = latency.components, machine.described, launches._tasks


def spelled(value: Mapping[str, Any]) -> str:
    """A frame with white space, members backwards, and every character of a text as an escape."""
    return json.dumps(backwards(value), indent=1, ensure_ascii=True) + " "


def backwards(value: Any) -> Any:
    """The members of objects from the last to the first."""
    if isinstance(value, Mapping):
        return {name: backwards(member) for name, member in [*value.items()][::-1]}
    return value


SPELLING = altered(
    "AMB-HIO-19",
    "spells its frames with white space and members backwards",
    HOST_IO,
    ReferenceAdapter,
    (endpoint, "write_frame", spelled),
    name="spelling",
)


def response(numbers: Iterator[int], pair: tuple[str, str], failure: RequestFailed | None) -> str:
    """A response with a code of its own, and words that never are the same."""
    code = None if failure is None else CODES[failure.code]
    text = None if failure is None else f"nein, zum {next(numbers)}. Mal"
    completion = {"ok": failure is None, "error_code": code, "error_message": text}
    return endpoint.write_frame({"correlation_id": pair[0], "request_id": pair[1], "completion": completion})


WORDS = altered(
    "AMB-HIO-10",
    "has error codes of its own, and messages that never are the same",
    HOST_IO,
    ReferenceAdapter,
    (endpoint, "_response", partial(response, count(1))),
    name="own_codes",
)


def shuffled() -> Choices:
    """Choices by a seed."""
    return Seeded(5)


ORDER = altered(
    "AMB-HIO-22",
    "completes requests in any order",
    HOST_IO,
    ReferenceAdapter,
    (endpoint, "FirstCome", shuffled),
    name="any_order",
)


def slower() -> Mapping[str, Any]:
    """Components of other times."""
    return {
        name: latency.Component(
            component.name, 13 * component.fixed + 7, component.bandwidth and component.bandwidth // 3
        )
        for name, component in COMPONENTS().items()
    }


TIMES = altered(
    "AMB-HIO-28",
    "takes other times at each component",
    HOST_IO,
    ReferenceAdapter,
    (latency, "components", slower),
    (adapter_host_io, "components", slower),
    name="times",
)


def named(machine: Machine) -> Mapping[str, int]:
    """The devices by other names."""
    return {f"Gerät {chr(97 + sip)}": sip for sip in range(machine.size.sips)}


def other_machine() -> Mapping[str, Any]:
    """Another size, and memories of other sizes."""
    answer = dict(DESCRIBED())
    memories = [memory | {"bytes": memory["bytes"] // 2} for memory in answer["memory"]]
    size = {"sips": 3, "cubes": 1, "pes": 5, "queue_depth": 19}
    return answer | {"memory": memories, "size": size}


def crowded() -> Mapping[str, Any]:
    """A queue of two requests."""
    answer = dict(DESCRIBED())
    return answer | {"size": answer["size"] | {"queue_depth": 2}}


class NoBridge(Without):
    """An endpoint without a runtime in front of it, which would know its devices by their names."""

    absent = frozenset({"host-runtime-bridge"})


CROWDED = altered(
    "AMB-HIO-22",
    "keeps two requests at a time, completes them in any order, and is slow",
    HOST_IO,
    NoBridge,
    (machine, "described", crowded),
    (endpoint, "FirstCome", shuffled),
    (latency, "components", slower),
    (adapter_host_io, "components", slower),
    name="crowded",
)


class LastCome(Choices):
    """The one that has waited for the shortest time."""

    def choose(self, count: int) -> int:
        """Return the last."""
        return count - 1


NEWEST = altered(
    "AMB-HIO-22",
    "completes the newest request first",
    HOST_IO,
    ReferenceAdapter,
    (endpoint, "FirstCome", LastCome),
    name="newest_first",
)


def paired_as_listed(kernel: Any, request: Any, tensors: Sequence[Sequence[Any]]) -> list[Any]:
    """The tasks of a launch, whose shards belong together as the request lists them."""
    return sorted(TASKS(kernel, request, [sorted(shards, key=lambda shard: shard.number) for shards in tensors]))


LISTED = altered(
    "AMB-HIO-57",
    "takes the shards of tensors together in the order of their lists",
    HOST_IO,
    ReferenceAdapter,
    (launches, "_tasks", paired_as_listed),
    name="shards_as_listed",
)


def large_machine() -> Mapping[str, Any]:
    """Return more of everything, and memories that begin elsewhere."""
    answer = dict(DESCRIBED())
    memories = [
        memory | {"base": memory["base"] + (1 << 40), "bytes": 4096 * memory["bytes"]} for memory in answer["memory"]
    ]
    size = {"sips": 5, "cubes": 3, "pes": 7, "queue_depth": 65536}
    return answer | {"memory": [memories[0], memories[1] | {"base": 1 << 50}], "size": size}


LARGER = altered(
    "HIO-D3-07",
    "has more devices and PEs, memories of terabytes that begin at no 0, and a deep queue",
    HOST_IO,
    NoBridge,
    (machine, "described", large_machine),
    name="larger_machine",
)


def with_a_switch() -> Mapping[str, Any]:
    """Return one component more."""
    host, *others = COMPONENTS().values()
    switch = latency.Component("switch", 70_000, 16_000_000_000)
    return {component.name: component for component in (host, switch, *others)}


LONGER_WAY = altered(
    "AMB-HIO-28",
    "has a switch between the host and the endpoint",
    HOST_IO,
    ReferenceAdapter,
    (latency, "components", with_a_switch),
    (adapter_host_io, "components", with_a_switch),
    (endpoint, "components", with_a_switch),
    (latency, "INWARD", ("host", "switch", "pcie_ep", "io_cpu")),
    name="longer_way",
)

MACHINE = altered(
    "HIO-D3-07",
    "is of another size, with devices of other names and memories of other sizes, without a runtime in front",
    HOST_IO,
    NoBridge,
    (Machine, "devices", named),
    (machine, "described", other_machine),
    name="other_machine",
)


@varies("AMB-HIO-51", "refuses a pair of ids for ever once it was used, and tags of another device", *HOST_IO)
class Strict(ReferenceAdapter):
    """Refuses what no case may ask it to take."""

    def __init__(self) -> None:
        super().__init__()
        self.endpoint = StrictEndpoint()

    def session_reset(self, **arguments: Any) -> dict[str, Any]:
        """Another endpoint of this kind."""
        answer = super().session_reset(**arguments)
        self.endpoint = StrictEndpoint()
        return answer

    def host_io_open(self, **arguments: Any) -> dict[str, Any]:
        """An endpoint of this kind, of another size."""
        answer = super().host_io_open(**arguments)
        self.endpoint = StrictEndpoint(self.endpoint.machine.size)
        return answer


class StrictEndpoint(Endpoint):
    """An endpoint that remembers every pair of ids."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.seen: set[tuple[str, str]] = set()

    def _require_room(self, pair: tuple[str, str]) -> None:
        super()._require_room(pair)
        if pair in self.seen:
            raise RequestFailed(ErrorCode.DUPLICATE_REQUEST, "was used before", "request_id")
        self.seen.add(pair)

    def _write(self, write: Any, pair: tuple[str, str]) -> Any:
        if self.machine.devices().get(write.target_device) != write.dst_sip:
            raise RequestFailed(ErrorCode.UNKNOWN_PLACE, "is of another device", "dst_sip")
        return super()._write(write, pair)

    def _read(self, read: Any) -> Any:
        if self.machine.devices().get(read.target_device) != read.src_sip:
            raise RequestFailed(ErrorCode.UNKNOWN_PLACE, "is of another device", "src_sip")
        return super()._read(read)


@varies("AMB-HIO-48", "lets requests that are sent together take effect as it completes them", *HOST_IO)
class LaterEffects(NoBridge):
    """Handles the frames of an exchange from the last to the first, or as the seed says, one after the other."""

    def host_io_exchange(self, *, frames: Sequence[str], seed: int | None = None, **options: Any) -> dict[str, Any]:
        """The answers, in the order of the effects; an exchange that tells about the queue or the ids stays whole."""
        pairs = [pair_in(frame) for frame in frames]
        if None in pairs or len(set(pairs)) < len(frames) or len(frames) > self.endpoint.machine.size.queue_depth:
            return dict(super().host_io_exchange(frames=frames, seed=seed, **options))
        waiting, answers, sinks = list(frames), [], []
        choices = LastCome() if seed is None else Seeded(seed)
        while waiting:
            frame = waiting.pop(choices.choose(len(waiting)))
            answer = super().host_io_exchange(frames=[frame], **options)
            answers += answer["answers"]
            sinks += answer.get("sinks", [])
        return {"answers": answers, "sinks": sinks}


def pair_in(frame: str) -> tuple[Any, Any] | None:
    """The ids of a frame; None where it has none that can be read."""
    try:
        message = json.loads(frame)
    except ValueError:
        return None
    pair = (message.get("correlation_id"), message.get("request_id")) if isinstance(message, dict) else (None, None)
    return pair if all(isinstance(text, str) for text in pair) else None


def launch_what_exists(machine: Machine, request: Any) -> Any:
    """Run the shards that are sound, in order, and return the first fault or failure."""
    kernel = launches._kernel_of(machine, request.kernel_ref)
    shards = [launches._shards(at, one) for at, one in enumerate(request.args) if isinstance(one, TensorArgument)]
    branches: list[Branch] = []
    failure: RequestFailed | None = None
    for task in TASKS(kernel, request, shards):
        try:
            for part in task:
                machine.require(part.place, part.shard.pa, part.shard.nbytes, field=part.field)
            works = task[0].place not in machine.failing
            branches += (Branch(part.place, part.shard.nbytes if works else None) for part in task)
            failed = launches._run(machine, kernel, request, task)
        except RequestFailed as fault:
            failed = fault
        failure = failure or failed
        if failed is not None and request.failure_policy == "fail_fast":
            break
    return Journey(branches=tuple(branches), code=launches._code(request.kernel_ref)), failure


EXISTING = altered(
    "AMB-HIO-44",
    "runs the shards of a launch that exist, and tells the faulty ones afterwards",
    HOST_IO,
    ReferenceAdapter,
    (endpoint, "launch", launch_what_exists),
    name="existing_shards",
)
