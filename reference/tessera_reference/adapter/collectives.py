"""The collectives methods of the reference: data, algorithms and costs, messages, queues, programs, payloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

from tessera_conformance.tensors import Tensor

from ..abi.policy import Descriptor
from ..abi.status import invalid, unsupported
from ..collectives import all_reduce, run
from ..collectives.compression import (
    Compression,
    TensorType,
    chunks_of,
    compress,
    densify,
    feed_back,
    pack,
    read_chunk_size,
    read_compression,
    sparsify,
    unpack,
)
from ..collectives.delivery import Sent
from ..collectives.links import PATHS, CreditLimiter, ReadyChunk, nodes_of, route, topology_of
from ..collectives.operations import OPERATIONS, Result, messages, send_recv
from ..collectives.planner import Issue, Options, Unit, plan_function
from ..collectives.programs import groups_of, require_runnable, run_plan, run_program, time_plan
from ..collectives.queues import (
    INFLIGHT,
    MAX_INFLIGHT,
    PIPELINES,
    Run,
    Slot,
    chunk_trace,
    dispatch,
    idle,
    require_sizes,
    simulate,
)
from ..collectives.schedules import algorithm as algorithm_of
from ..collectives.schedules import require_known, require_within
from ..collectives.selection import Knobs, Limits, Measurement, check_chunks, estimate, overlap_score, select, tune
from ..collectives.travel import Cut, Transfer, algorithms, travel
from ..graph.execution import bind_on_mesh, find_function
from ..ir.targets import DEFAULT, target_of
from ..ir.text import print_module
from ..numerics import formats
from ..numerics.array import Array
from ..numerics.formats import shown
from .messages import array, checked, function_message, message, outcomes, tensor, unit_message, unit_of
from .session_state import SessionState

_LATEST = (1 << 63) - 1
TARGET = target_of(DEFAULT)


class CollectivesMethods(SessionState):
    """The methods of the chapter, in the order of its sections."""

    # Methods that run a collective on all ranks.

    @checked
    def collectives_all_reduce(
        self,
        *,
        inputs: Sequence[Tensor],
        op: Any,
        level: str = "strict",
        context: int | None = None,
        wire: Any = None,
        descriptors: Sequence[Descriptor] | None = None,
    ) -> dict[str, Any]:
        """Return the same bits on every rank; every level has the strict ones."""
        policy = None if context is None else self.policy(context, "tessAllReduce")
        result = all_reduce(_arrays(inputs), op, policy=policy, wire=wire, descriptors=descriptors)
        return {"outputs": [tensor(result) for _ in inputs]}

    @checked
    def collectives_run(
        self,
        *,
        operation: str,
        inputs: Sequence[Tensor],
        algorithm: str = "ring",
        groups: Sequence[Sequence[int]] | None = None,
        level: str = "strict",
        messages: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        """Return every rank's result, and the messages that carried it; fast has the deterministic bits."""
        chosen = _chosen(operation, inputs, groups) if algorithm == "auto" else algorithm
        result = run(operation, _arrays(inputs), name=chosen, groups=groups, level=level, **options)
        return {**_result(result, messages), "algorithm": chosen}

    @checked
    def collectives_send_recv(
        self,
        *,
        inputs: Sequence[Tensor],
        pairs: Sequence[Sequence[int]],
        chunk: int | None = None,
        messages: bool = False,
    ) -> dict[str, Any]:
        """Return every rank's data after all pairs have communicated."""
        return _result(send_recv(_arrays(inputs), pairs, chunk), messages)

    # Methods that choose the route of collectives over a machine, and give the reason (collectives spec 3 and 5).

    @checked
    def collectives_topology(self, *, topology: str) -> dict[str, Any]:
        """Return the graph."""
        graph = topology_of(topology)
        ends = {
            "gpu": [str(device.id) for device in graph.devices],
            "nic": [nic.name for nic in graph.nics],
            "switch": [switch.name for switch in graph.switches],
            "host": [node.name for node in graph.nodes],
        }
        return {
            "nodes": [{"name": name, "kind": kind} for kind, names in ends.items() for name in names],
            "edges": [asdict(link) | {"a": str(link.a), "b": str(link.b)} for link in graph.links],
        }

    @checked
    def collectives_route(
        self,
        *,
        topology: str,
        source: int,
        target: int,
        path: str = "auto",
        down: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return the transport between two devices."""
        chosen = route(topology_of(topology), source, target, path, down, environment)
        return {"path": chosen.path, "links": list(chosen.names), "fallback": chosen.fallback}

    @checked
    def collectives_select(
        self,
        *,
        collective: str,
        bytes: int,
        ranks: int,
        topology: str | None = None,
        algorithm: str = "auto",
        tuned: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return the algorithm, and the reason for it."""
        machine = None if topology is None else topology_of(topology)
        return asdict(select(collective, bytes, ranks, machine, algorithm, tuned, environment))

    @checked
    def collectives_check_chunks(self, *, topology: str, chunk_bytes: int, max_inflight: int) -> dict[str, Any]:
        """Return the limits of chunks on a topology."""
        limits = asdict(check_chunks(topology_of(topology), chunk_bytes, max_inflight))
        return {name: {"least": least, "most": most} for name, (least, most) in limits.items()}

    @checked
    def collectives_estimate(self, *, alpha: int, hops: int, bytes: int, bandwidth: int) -> dict[str, Any]:
        """Return the duration of a chunk."""
        return {"picoseconds": estimate(alpha, hops, bytes, bandwidth)}

    @checked
    def collectives_overlap_score(
        self, *, compute: Sequence[Sequence[int]], communication: Sequence[Sequence[int]]
    ) -> dict[str, Any]:
        """Return the overlap score of the queues."""
        score = overlap_score(compute, communication)
        return {"score": {"numerator": score.numerator, "denominator": score.denominator}}

    @checked
    def collectives_tune(
        self,
        *,
        measurements: Sequence[Mapping[str, Any]],
        knobs: Mapping[str, Any],
        limits: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the knobs after each measurement."""
        measured = [Measurement(**measurement) for measurement in measurements]
        steps = tune(measured, Knobs(**knobs), Limits(**limits or {}))
        return {"steps": [asdict(step.knobs) | {"pinned": step.pinned} for step in steps]}

    # Methods that pass the messages of collectives over links (collectives spec 4 and 6).

    @checked
    def collectives_transfers(
        self,
        *,
        operation: str,
        algorithm: str,
        count: int,
        element_bytes: int,
        topology: str,
        devices: Sequence[int] | None = None,
        root: int = 0,
        chunk: int | None = None,
        down: Sequence[str] = (),
        path: str = "auto",
        cuts: Sequence[Mapping[str, Any]] = (),
        trace: bool = False,
    ) -> dict[str, Any]:
        """Return all transfers, in order of arrival or loss."""
        require_known("collective", "operation", operation, OPERATIONS)
        require_known("collective", "path", path, ("auto", *PATHS))
        machine = topology_of(topology)
        links = tuple(link.name for link in machine.links)
        failing = [*(Cut(0, link) for link in down), *(Cut(**members) for members in cuts)]
        for failure in failing:
            require_within("collective", f"time of the cut of {failure.link}", failure.at, 0, _LATEST)
        for failure in failing:
            require_known("collective", "link", failure.link, links)
        nodes = nodes_of("collective", machine, devices)
        used = list(chain.from_iterable(nodes))
        require_within("collective", "root", root, 0, len(used) - 1)
        scheme = algorithm_of(algorithm, len(used), len(nodes[0]))
        sent = messages(operation, scheme, count, root=root, chunk=chunk)
        if algorithm not in (possible := algorithms(machine, used, frozenset(down))) and possible:
            subject = f"algorithm {algorithm!r} for devices {used}"
            raise unsupported(operation, subject, f"one of {', '.join(possible)}")
        transfers = travel(machine, used, sent, element_bytes, chunk=chunk, path=path, cuts=failing)
        extra = {"trace": chunk_trace(operation, transfers, used, element_bytes, chunk)} if trace else {}
        duration = max((transfer.end for transfer in transfers), default=0)
        return {"transfers": [_delivered_message(transfer) for transfer in transfers], "duration": duration, **extra}

    @checked
    def collectives_limiter(self, *, credits: Mapping[str, int]) -> dict[str, Any]:
        """Return a limiter with links of its own."""
        limiter = CreditLimiter(credits)
        self._limiters.append(limiter)
        return {"limiter": len(self._limiters)}

    @checked
    def collectives_acquire(self, *, limiter: int, ready: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the chunk that may be issued."""
        chunks = [ReadyChunk(row["id"], tuple(row["links"])) for row in ready]
        return {"chunk": self._limiter("collectives.acquire", limiter).acquire(chunks)}

    @checked
    def collectives_release(self, *, limiter: int, chunk: str) -> dict[str, Any]:
        """Record the arrival of a chunk."""
        self._limiter("collectives.release", limiter).release(chunk)
        return {}

    def _limiter(self, function: str, number: int) -> CreditLimiter:
        require_within(function, "limiter", number, 1, len(self._limiters))
        return self._limiters[number - 1]

    # Methods of queues on which collectives and computations share devices (collectives spec 4.1 and 7).

    @checked
    def collectives_simulate(
        self,
        *,
        units: Sequence[Mapping[str, Any]],
        topology: str,
        devices: Sequence[int] | None = None,
        max_inflight: int = MAX_INFLIGHT,
    ) -> dict[str, Any]:
        """Return the times of each unit on each device."""
        machine = topology_of(topology)
        ranks = sum(map(len, nodes_of("simulate", machine, devices)))
        return _run_message(simulate([unit_of(unit, ranks) for unit in units], machine, devices, max_inflight))

    @checked
    def collectives_pipeline(
        self,
        *,
        kind: str,
        layers: int,
        bytes: int,
        picoseconds: int,
        topology: str,
        devices: Sequence[int] | None = None,
    ) -> dict[str, Any]:
        """Return the units of a pipeline, with the time of each."""
        require_known("pipeline", "kind", kind, tuple(PIPELINES))
        require_sizes(layers, bytes, picoseconds)
        machine = topology_of(topology)
        ranks = sum(map(len, nodes_of("simulate", machine, devices)))
        units = PIPELINES[kind](layers, bytes, picoseconds, range(ranks))
        run = simulate(units, machine, devices, INFLIGHT)
        return {"units": [unit_message(unit) for unit in units], **_run_message(run)}

    @checked
    def collectives_dispatch(
        self, *, inputs: Sequence[Tensor], experts: Sequence[Sequence[int]], count: int, dtype: str | None = None
    ) -> dict[str, Any]:
        """Return the results of the experts' ranks, bucket by bucket."""
        wire = None if dtype is None else formats.dtype(dtype)
        result = dispatch(_arrays(inputs), experts, count, wire)
        return {"buckets": message(result)}

    # Texts of Graph IR in which collectives yield futures.

    @checked
    def collectives_read(self, *, text: str) -> dict[str, Any]:
        """Return the program of a text, and the text printed again."""
        with outcomes():
            modules = self.compiler.text("graph", text, TARGET)
        functions = [function_message(function) for module in modules for function in module.functions.values()]
        return {"functions": functions, "text": "".join(print_module(module) for module in modules)}

    @checked
    def collectives_execute(
        self,
        *,
        text: str,
        function: str,
        ranks: Sequence[Mapping[str, Tensor]],
        mesh: str | None = None,
        level: str = "strict",
    ) -> dict[str, Any]:
        """Return the results of a function on every rank; fast has the deterministic bits."""
        with outcomes():
            module, callee = find_function(self.compiler.text("graph", text, TARGET), function)
            inputs = [{key: array(value) for key, value in rank.items()} for rank in ranks]
            results = run_program(module, callee, inputs, mesh, level)
        return {"ranks": [{"outputs": message(outputs)} for outputs in results]}

    @checked
    def collectives_plan(self, *, text: str, function: str, **options: int | None) -> dict[str, Any]:
        """Return the units of a function, in order."""
        with outcomes():
            module, callee = find_function(self.compiler.text("graph", text, TARGET), function)
            plan = plan_function(module, callee, Options(**options))
        return {"units": [_unit(unit) for unit in plan.units]}

    @checked
    def collectives_execute_plan(
        self,
        *,
        text: str,
        function: str,
        ranks: Sequence[Mapping[str, Tensor]],
        mesh: str | None = None,
        level: str = "strict",
        tile: int | None = None,
        max_inflight: int | None = None,
        depth: int | None = None,
        seed: int | None = None,
        topology: str | None = None,
        picoseconds: int = 0,
    ) -> dict[str, Any]:
        """Return the results of a plan's units on every rank, and its events in order with their times."""
        with outcomes():
            module, callee = find_function(self.compiler.text("graph", text, TARGET), function)
            require_runnable(module, callee, lossy=level == "fast")
            inputs = [{key: array(value) for key, value in rank.items()} for rank in ranks]
            running, arguments = bind_on_mesh(module, callee, inputs, mesh)
            plan = plan_function(module, callee, Options(tile, max_inflight, depth))
            groups = groups_of(plan, module, callee, running)
            results, progress = run_plan(module, callee, plan, arguments, groups, seed, level)
            times = {}
            if topology is not None:
                run = time_plan(plan, groups, len(ranks), topology_of(topology), picoseconds, max_inflight)
                times = {"timeline": [_slot(slot) for slot in run.slots], "duration": run.duration}
        outputs = [{"outputs": message(output)} for output in results]
        units = [_unit(unit) for unit in plan.units]
        return {"ranks": outputs, "units": units, "order": message(progress), **times}

    # Chunking and compression, of one tensor at a time (collectives spec 2.3 and 2.5).

    @checked
    def collectives_chunks(
        self,
        *,
        shape: Sequence[int],
        dtype: str,
        chunk: Any = None,
        chunk_bytes: Any = None,
        tile: Sequence[int] | None = None,
    ) -> dict[str, Any]:
        """Return the elements of each chunk."""
        function = "collectives.chunks"
        size = read_chunk_size(function, chunk, chunk_bytes)
        rows, columns = _tile(function, tile)
        chunks = chunks_of(function, shape, formats.dtype(dtype), size, (rows, columns))
        return {"chunks": message(chunks)}

    @checked
    def collectives_compress(
        self, *, input: Tensor, dtype: Any, qscheme: Any = None, block: Any = None
    ) -> dict[str, Any]:
        """Return the payload of a tensor, and the tensor that arrives."""
        function = "collectives.compress"
        compression = read_compression(function, dtype, qscheme, block)
        compressed: dict[str, Any] = message(compress(function, array(input), compression))
        return compressed if compression.block is None else {**compressed, "block": compression.block}

    @checked
    def collectives_pack(
        self, *, inputs: Sequence[Tensor], dtype: Any = None, qscheme: Any = None, block: Any = None
    ) -> dict[str, Any]:
        """Return the bytes of a buffer of tensors."""
        compression = _compression("collectives.pack", dtype, qscheme, block)
        return {"wire": pack(_arrays(inputs), compression).hex()}

    @checked
    def collectives_unpack(
        self,
        *,
        wire: bytes,
        tensors: Sequence[Mapping[str, Any]],
        dtype: Any = None,
        qscheme: Any = None,
        block: Any = None,
    ) -> dict[str, Any]:
        """Return the tensors of a buffer."""
        compression = _compression("collectives.unpack", dtype, qscheme, block)
        types = [TensorType(formats.dtype(stated["dtype"]), tuple(stated["shape"])) for stated in tensors]
        return {"outputs": message(unpack(wire, types, compression))}

    @checked
    def collectives_feedback(
        self, *, gradients: Sequence[Tensor], dtype: Any, qscheme: Any = None, block: Any = None
    ) -> dict[str, Any]:
        """Return the values sent and kept at each step."""
        function = "collectives.feedback"
        compression = read_compression(function, dtype, qscheme, block)
        steps = feed_back(function, _arrays(gradients), compression)
        return {"sent": message([step.sent for step in steps]), "residuals": message([step.residual for step in steps])}

    @checked
    def collectives_sparsify(self, *, input: Tensor, k: Any) -> dict[str, Any]:
        """Return the largest elements, and the rest."""
        sparse: dict[str, Any] = message(sparsify("collectives.sparsify", array(input), k))
        return sparse

    @checked
    def collectives_densify(self, *, indices: Tensor, values: Tensor, shape: Sequence[int]) -> dict[str, Any]:
        """Return a tensor of some elements."""
        return {"output": tensor(densify("collectives.densify", array(indices), array(values), shape))}


def _chosen(operation: str, inputs: Sequence[Tensor], groups: Sequence[Sequence[int]] | None) -> str:
    """Return the algorithm for the first group's full buffer; `run` reports faulty groups. Raises `Failure`."""
    group = [rank for rank in (groups[0] if groups else range(len(inputs))) if rank < len(inputs)]
    sizes = [len(inputs[rank].data) for rank in group]
    size = sum(sizes) if operation == "all_gather" else max(sizes, default=0)
    return select(operation, size, max(len(group), 1)).algorithm


def _arrays(tensors: Sequence[Tensor]) -> list[Array]:
    return [array(operand) for operand in tensors]


def _result(result: Result, messages: bool) -> dict[str, Any]:
    """Return every rank's result, and the messages if they are wanted."""
    sent = {"messages": [_message(sent) for sent in result.sent]} if messages else {}
    return {"outputs": message(result.outputs), **sent}


def _message(sent: Sent) -> dict[str, Any]:
    """Return a message as the protocol writes it."""
    return {("count" if name == "elements" else name): value for name, value in sent._asdict().items()}


def _delivered_message(transfer: Transfer) -> dict[str, Any]:
    members = _message(transfer.sent)
    del members["combines"]
    lost = {"lost": True} if transfer.lost else {}
    return {**members, "links": list(transfer.way.names), "start": transfer.start, "end": transfer.end, **lost}


def _run_message(run: Run) -> dict[str, Any]:
    queues = {queue: idle(run, queue) for queue in ("compute", "comm")}
    return {"timeline": message(run.slots), "duration": run.duration, "idle": queues}


def _slot(slot: Slot) -> dict[str, Any]:
    """Return a slot of a unit, by its number."""
    unit = int(slot.id.partition("/")[0])
    return {"unit": unit, "queue": slot.queue, "device": slot.device, "start": slot.start, "end": slot.end}


def _unit(unit: Unit) -> dict[str, Any]:
    """Return a unit with the members that it has."""
    members: dict[str, Any] = {name: getattr(unit, name) for name in ("id", "queue", "op", "operands", "results")}
    members["after"] = unit.after
    if isinstance(step := unit.step, Issue):
        members |= {"buffer": unit.buffer, "wire": step.wire, "reduces_in": step.reduces_in}
        members["chunk"] = {"first": unit.chunk[0], "count": unit.chunk[1]}
        members["parts"] = step.parts if len(step.parts) > 1 else None
        members["folds"] = [{"kind": fold.kind, "at": fold.at, "by": fold.by} for fold in step.folds] or None
    unit_members: dict[str, Any] = message(members)
    return unit_members


def _compression(function: str, dtype: Any, qscheme: Any, block: Any) -> Compression | None:
    """Return the compression of a wire; None where no wire is named."""
    unsaid = dtype is None and qscheme is None and block is None
    return None if unsaid else read_compression(function, dtype, qscheme, block)


def _tile(function: str, tile: Sequence[int] | None) -> tuple[int, int]:
    """Return the rows and columns of a tile; those of one element for None."""
    if tile is None:
        return 1, 1
    if len(tile) != 2:
        raise invalid(function, f"tile has {len(tile)} extents", "2: rows and columns")
    if any(type(extent) is not int or extent < 1 for extent in tile):
        raise invalid(function, f"tile {shown(list(tile))}", "extents from 1 on")
    return tile[0], tile[1]
