"""Steps that queue work: collectives, launches, graphs, and collectives that single ranks issue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tessera_reference.abi.policy import Descriptor, NumericsPolicy
from tessera_reference.abi.status import Status
from tessera_reference.runtime.launches import LaunchConfig

from .model import (
    ASYNCHRONOUS,
    STRICT,
    WHOLE,
    Capture,
    Context,
    Mesh,
    Module,
    Place,
    Queued,
    Stream,
    Use,
    buffer,
    collective,
    kernel,
)
from .session import FAST, OK, Session
from .steps_objects import (
    INVALID,
    limit_of,
    memcpy,
    missing,
    move,
    ordered,
    read_only,
    record,
    synchronized,
    tidy_place,
    wait,
)

VIOLATION = Status.TESS_ERR_DETERMINISM_VIOLATION
CORRUPT = Status.TESS_ERR_CACHE_CORRUPT
SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 1, 12: 8, 13: 16}
FUNCTIONS = {
    "all_reduce": ("tessAllReduce", "buffer"),
    "reduce_scatter": ("tessReduceScatter", "inout"),
    "all_gather": ("tessAllGather", "inout"),
    "broadcast": ("tessBroadcast", "buffer"),
}


def asked(session: Session, mesh: Mesh) -> tuple[str, int, int, int, str | None, int, set[Status]]:
    """A collective with its count, dtype, operator, axis and root, and what is wrong with them."""
    name = session.pick(tuple(FUNCTIONS))
    dtype = session.pick((9, 9, 9, 10, 7, 8, 5, 3, 1, 11, 12))
    operator = session.below(3) if name in ("all_reduce", "reduce_scatter") else 0
    axis = None if name == "broadcast" else session.pick(("dp", "tp", "pp", "ep", "dp"))
    count = session.pick((4, 8, 2, 0, 1, 3))
    root = session.below(len(mesh.devices) + 1) if name == "broadcast" else 0
    wrong: set[Status] = set()
    undefined = (operator == 0 and dtype == 11) or (operator and dtype in (12, 13))
    if name in ("all_reduce", "reduce_scatter") and undefined:
        wrong |= {Status.TESS_ERR_UNSUPPORTED}
    if name in ("reduce_scatter", "all_gather") and count % mesh.axes.size_along(axis):
        wrong |= {INVALID}
    if name == "broadcast" and root >= len(mesh.devices):
        wrong |= {INVALID}
    return name, count, dtype, operator, axis, root, wrong


def cut_of(mesh: Mesh) -> Any:
    """The pairs of ranks that are cut off from each other when the collective runs."""
    return lambda: [
        tuple(each["ranks"])
        for each in mesh.context.faults.told
        if each["kind"] == "link_down" and each["mesh"] == mesh.handle
    ]


def collective_call(session: Session, stream: int | None = None) -> None:
    world, stream = session.world, session.any("stream") if stream is None else stream
    on = world.streams.get(stream)
    if on is None:
        return
    mesh = on.mesh if not session.chance(3) else world.meshes[session.any("mesh")]
    name, count, dtype, operator, axis, root, wrong = asked(session, mesh)
    place = tidy_place(session, on, count * SIZES[dtype], step=min(8, SIZES[dtype]))
    if place is None:
        return
    if on.mesh is not mesh:
        wrong |= {INVALID}
    wrong |= read_only([place] if count else [])
    if mesh.context.forbids(mesh.context.governing()):
        wrong |= {VIOLATION}
    must, maybe = limit_of(on, [place.block]) if count else (set(), set())
    if session.corrupted:
        maybe |= {CORRUPT, OK}
    function, argument = FUNCTIONS[name]
    arguments: dict[str, Any] = {"mesh": mesh.handle, argument: place.address, "count": count, "dtype": dtype}
    kinds = {"mesh": "mesh", argument: "device pointer", "count": "size", "dtype": "dtype"}
    if name in ("all_reduce", "reduce_scatter"):
        arguments["op"], kinds["op"] = operator, "operator"
    if name == "broadcast":
        arguments["root"], kinds["root"] = root, "rank"
    else:
        arguments["axis"], kinds["axis"] = axis, "axis"
    arguments["stream"], kinds["stream"] = stream, "stream"
    unspoilt = () if count else (argument,)
    status, _ = session.call(function, arguments, kinds, wrong or must, maybe=maybe, unspoilt=unspoilt)
    if status is not OK:
        return
    places = [place if count else None] * len(mesh.devices)
    work = collective(mesh, name, places, dtype, operator=operator, axis=axis, root=root, cut=cut_of(mesh))
    uses = [Use(place, True)] if count else []
    world.submit(on, Queued(uses, work.apply, "collective", seeds=(mesh.context.seed,)))


COLLECTIVE_STEPS = {collective_call: 12}


assert set(WHOLE) <= set(SIZES)


ARCH = Status.TESS_ERR_ARCH_MISMATCH
DETERMINISTIC, CAPTURE, PERSISTENT, LOW_LATENCY = 1, 2, 4, 8


def befalls(session: Session, context: Context, name: str) -> list[dict[str, Any]]:
    """Count a launch; the faults that it meets (AMB-RT-81)."""
    plan = context.faults
    plan.launches[name] = count = plan.launches.get(name, 0) + 1
    return [
        dict(each)
        for each in plan.told
        if each["kind"].startswith("kernel_") and each.get("nth", 1) == count and each.get("kernel") in (None, name)
    ]


def launch(session: Session) -> None:
    world, handle = session.world, session.any("kernel")
    stream = session.any("stream")
    on = world.streams.get(stream)
    if on is None or not handle:
        return
    module, name = world.kernels[handle]
    mesh = on.mesh if not session.chance(4) else world.meshes[session.any("mesh")]
    flags = session.pick((0, 0, 0, 0, DETERMINISTIC, LOW_LATENCY, PERSISTENT, CAPTURE))
    scalar = session.pick((1, 2, 3, 4, 8, 0) if name != "any" else (8, 3, 1))
    size = scalar * 4 if name == "any" else 32
    count = {"nothing": 0, "copy": 2}.get(name, 1)
    tensors = [tidy_place(session, on, size, step=4) for _ in range(count)]
    if any(each is None for each in tensors):
        return
    places = [each for each in tensors if each is not None]
    pointers = [each.address for each in places]
    wrong = launch_problems(mesh, on, module, flags) | read_only(places[-1:])
    if pointers and session.chance(4):
        pointers[-1] = session.pick((0, pointers[-1] + 2, 2**63, 1, places[-1].block.address + places[-1].block.size))
        wrong |= {INVALID}
    must, maybe = (set(), set()) if flags & CAPTURE else queue_limit(on, [each.block for each in places])
    waiting = sum(each.persistent for each in world.streams.values())
    if flags & PERSISTENT and waiting >= 3:
        maybe |= {Status.TESS_ERR_UNSUPPORTED, OK}
    if session.corrupted:
        maybe |= {CORRUPT, OK}
    data = buffer(name, scalar, pointers)
    config = LaunchConfig(session.pick(((1, 1, 1), (4, 2, 1))), session.pick(((0, 0, 0), (32, 1, 1))), 0, flags)
    kinds = {"kernel": "kernel", "mesh": "mesh", "cfg": "config", "argBuffer": "argument bytes", "argSize": "size"}
    kinds |= {"stream": "stream"}
    given: Any = data + bytes(session.pick((0, 0, 8)))
    arguments = {
        "kernel": handle,
        "mesh": mesh.handle,
        "cfg": config,
        "argBuffer": given,
        "argSize": len(given),
        "stream": stream,
    }
    unspoilt = () if data else ("argBuffer",)
    status, _ = session.call("tessLaunch", arguments, kinds, wrong or must, maybe=maybe, unspoilt=unspoilt)
    if status is not OK:
        return
    faults = [] if flags & CAPTURE else befalls(session, mesh.context, name)
    queue_launch(session, on, name, scalar, places, flags, faults)


def queue_limit(stream: Stream, blocks: list[Any]) -> tuple[set[Status], set[Status]]:
    """As `limit_of`, for a launch that is not captured even where its stream is."""
    capture, stream.capture = stream.capture, None
    try:
        return limit_of(stream, blocks)
    finally:
        stream.capture = capture


def launch_problems(mesh: Mesh, on: Stream, module: Module, flags: int) -> set[Status]:
    """Return the problems of a launch, its pointers aside."""
    wrong: set[Status] = set()
    if on.mesh is not mesh or module.context is not mesh.context:
        wrong |= {INVALID}
    if not mesh.targets <= module.targets:
        wrong |= {ARCH}
    if mesh.context.forbids(mesh.context.governing(module.policy, bool(flags & DETERMINISTIC))):
        wrong |= {VIOLATION}
    return wrong


def queue_launch(
    session: Session, on: Stream, name: str, scalar: int, places: list[Place], flags: int, faults: list[dict[str, Any]]
) -> None:
    seeds = (on.mesh.context.seed,)
    work = replace(launch_work(session, on.mesh, name, scalar, places, faults), seeds=seeds)
    if flags & CAPTURE:
        mesh = on.mesh
        work = replace(
            work, again=lambda: launch_work(session, mesh, name, scalar, places, befalls(session, mesh.context, name))
        )
        if on.capture is None:
            on.capture = Capture(before={on.handle: frozenset()})
        session.world.submit(on, work)
        return
    if flags & PERSISTENT:
        on.persistent += 1
    session.world.enqueue(on, work)


def launch_work(
    session: Session, mesh: Mesh, name: str, scalar: int, places: list[Place], faults: list[dict[str, Any]]
) -> Queued:
    """A launch that meets these faults."""
    bad = [each for each in faults if each["kind"] in ("kernel_trap", "kernel_hang")]
    trapped = [rank for rank in range(len(mesh.devices)) if any(each.get("rank") in (None, rank) for each in bad)]
    work = kernel(mesh, name, scalar, places, trapped, cut_of(mesh))
    hangs = any(each["kind"] == "kernel_hang" for each in bad) and bool(trapped)
    return clouded(session, work) if hangs or (name == "met" and trapped) else work


def clouded(session: Session, work: Queued) -> Queued:
    """Work that keeps others waiting: where there is a timeout, or ranks that meet, they may fail with it."""

    def apply() -> Any:
        errors = work.apply()
        session.world.cloud()
        return errors

    return replace(work, apply=apply)


LAUNCH_STEPS = {launch: 24}


def graph_instantiate(session: Session, stream: int | None = None) -> None:
    world, given = session.world, stream
    stream = session.any("stream") if given is None else given
    capturing = [each.handle for each in world.streams.values() if each.capture is not None]
    if given is None and capturing and session.chance(80):
        stream = session.pick(capturing)
    on = world.streams.get(stream)
    wrong = missing(stream) | (set() if on is None or on.capture is not None else {INVALID})
    status, graph = session.call(
        "tessxGraphInstantiate", {"stream": stream}, {"stream": "stream"}, wrong, outputs=("graph",)
    )
    if status is not OK or on is None or on.capture is None:
        return
    ended = on.capture
    world.end_capture(ended)
    world.graphs[graph] = (on.mesh, tuple(ended.nodes))


def graph_nodes(session: Session) -> None:
    graph = session.any("graph")
    status, nodes = session.call(
        "tessxGraphNodes", {"graph": graph}, {"graph": "graph"}, missing(graph), outputs=("nodes",)
    )
    if status is OK:
        found = [(each.work.kind, each.after) for each in nodes]
        expected = [(each.work.kind, each.after) for each in session.world.graphs[graph][1]]
        if found != expected:
            raise session.wrong(f"the nodes are {found}, not {expected}")


def graph_launch(session: Session) -> None:
    world, graph, stream = session.world, session.any("graph"), session.any("stream")
    if graph and session.chance(80):
        fit = [each.handle for each in world.of_mesh(world.graphs[graph][0]) if each.capture is None]
        stream = session.pick(fit) if fit else stream
    on, wrong = world.streams.get(stream), missing(graph) | missing(stream)
    must: set[Status] = set()
    maybe: set[Status] = set()
    uses: list[Use] = []
    if on is not None and graph:
        mesh, nodes = world.graphs[graph]
        uses = [use for each in nodes for use in each.work.uses]
        if on.mesh is not mesh or on.capture is not None or any(use.place.block.freed for use in uses):
            wrong |= {INVALID}
        must, maybe = limit_of(on, [use.place.block for use in uses])
    kinds = {"graph": "graph", "stream": "stream"}
    arguments = {"graph": graph, "stream": stream}
    status, _ = session.call("tessxGraphLaunch", arguments, kinds, wrong or must, maybe=maybe)
    if status is OK and on is not None:
        nodes = world.graphs[graph][1]
        works = [each.work.again() if each.work.again else each.work for each in nodes]
        seeds = [seed for each in nodes for seed in each.work.seeds]
        apply = lambda: [error for each in works for error in each.apply()]  # noqa: E731
        world.enqueue(on, Queued(uses, apply, "graph", seeds=seeds))


def graph_destroy(session: Session) -> None:
    graph = session.any("graph")
    status, _ = session.call("tessxGraphDestroy", {"graph": graph}, {"graph": "graph"}, missing(graph))
    if status is OK:
        session.world.end("graph", graph)


def captured(session: Session) -> None:
    """A whole capture on one stream, or joined by an event on two; mostly instantiated and replayed."""
    stream = launch_captured(session)
    on = session.world.streams.get(stream)
    if on is None or on.capture is None:
        return
    collective_call(session, stream)
    others = [each.handle for each in session.world.of_mesh(on.mesh) if each is not on and each.capture is None]
    event = session.any("event")
    if others and event and session.chance(50):
        other = session.pick(others)
        record(session, event, stream)
        wait(session, other, event)
        memcpy(session, other)
    memcpy(session, stream)
    if session.chance(80):
        graph_instantiate(session, stream)
        for _ in range(2):
            graph_launch(session)


def launch_captured(session: Session) -> int:
    """A launch that begins a capture, on a stream and with a kernel that go together: the stream, or 0."""
    world = session.world
    for stream in world.streams.values():
        for handle, (module, name) in world.kernels.items():
            if name != "fill" or launch_problems(stream.mesh, stream, module, CAPTURE):
                continue
            place = tidy_place(session, stream, 32, step=4)
            if place is None or place.block.read_only:
                return 0
            data = buffer("fill", 9, [place.address])
            config = LaunchConfig((1, 1, 1), flags=CAPTURE)
            maybe = {CORRUPT, OK} if session.corrupted else set()
            arguments = {"kernel": handle, "mesh": stream.mesh.handle, "cfg": config, "argBuffer": data}
            arguments |= {"argSize": 16, "stream": stream.handle}
            status, _ = session.judged("tessLaunch", arguments, maybe or {OK})
            if status is OK:
                queue_launch(session, stream, "fill", 9, [place], CAPTURE, [])
            return stream.handle
    return 0


def relayed(session: Session) -> None:
    """Work that hangs on that of another stream, which an event orders; then all of it is looked at."""
    world = session.world
    pairs = [(a, b) for a in world.streams.values() for b in world.of_mesh(a.mesh) if a is not b]
    event = session.any("event")
    if not pairs or not event:
        return
    first, second = session.pick(pairs)
    places = [session.place(8, devices=first.mesh.devices) for _ in range(3)]
    if first.capture or second.capture or any(each is None or each.block.shared for each in places):
        return
    for stream, source, target in ((first, places[0], places[1]), (second, places[1], places[2])):
        if source is None or target is None or not all(ordered(session, stream, each) for each in (source, target)):
            return
        move(session, stream, 2, target, source)
        record(session, event, stream.handle)
        wait(session, second.handle, event)
    synchronized(session, second.handle)


GRAPH_STEPS = {graph_instantiate: 4, graph_nodes: 2, graph_launch: 5, graph_destroy: 1, captured: 6, relayed: 6}
MISMATCH = Status.TESS_ERR_COLLECTIVE_MISMATCH


def issue_together(session: Session) -> None:
    """Each rank of a stream issues a collective by itself; one may ask for something else, or stay away."""
    world, stream = session.world, session.any("stream")
    on = world.streams.get(stream)
    if on is None:
        return
    mesh = on.mesh
    name, count, dtype, operator, axis, root, wrong = asked(session, mesh)
    if wrong or not count or on.limit:
        return
    places = [tidy_place(session, on, count * SIZES[dtype], step=min(8, SIZES[dtype])) for _ in mesh.devices]
    if any(each is None or each.block.read_only for each in places):
        return
    ranks = list(range(len(mesh.devices)))
    ranks = ranks[session.below(len(ranks)) :] + ranks[: session.below(len(ranks))]
    ranks = list(dict.fromkeys([*ranks, *range(len(mesh.devices))]))
    odd = session.pick(ranks) if session.chance(20) else None
    ends: set[Status] = set()
    astray = False
    absent = 1 if len(ranks) > 1 and session.chance(10) else 0
    forbidden = mesh.context.forbids(mesh.context.governing())
    for rank in ranks[: len(ranks) - absent]:
        named, difference = issued(session, mesh, name, operator, axis, root, rank == odd)
        ends |= difference
        astray |= named["axis"] != axis
        pointer = places[rank].address  # type: ignore[union-attr]
        arguments = {"mesh": mesh.handle, "rank": rank, "collective": name, "buffer": pointer, "count": count}
        arguments |= {"dtype": dtype, "stream": stream}
        maybe = {CORRUPT, OK} if session.corrupted else set()
        status, _ = session.judged("tessxIssue", arguments, maybe or {OK}, named=named)
        if status is not OK:
            world.cloud()
            return
        on.carried.append(named["descriptor"].seed if named["descriptor"] is not None else mesh.context.seed)
    del forbidden  # what single ranks bring is judged when they meet
    queue_issued(
        session,
        on,
        name,
        [each for each in places if each is not None],
        dtype,
        operator,
        axis,
        root,
        ranks,
        ends,
        absent,
        odd,
        astray,
    )


def issued(
    session: Session, mesh: Mesh, name: str, operator: int, axis: str | None, root: int, odd: bool
) -> tuple[dict[str, Any], set[Status]]:
    """The parameters of one rank, and how the rendezvous ends for it."""
    named: dict[str, Any] = {"op": operator, "axis": axis, "root": root, "algorithm": "ring"}
    named |= {"descriptor": Descriptor(seed=3), "policy": NumericsPolicy(**STRICT)}
    if name not in ("all_reduce", "reduce_scatter"):
        named["op"] = None
    if name != "broadcast":
        named["root"] = None
    if not odd or len(mesh.devices) == 1:
        return named, set()
    what = session.pick(("algorithm", "descriptor", "policy", "axis" if axis else "algorithm"))
    if what == "descriptor":
        return named | {"descriptor": Descriptor(seed=4)}, {VIOLATION}
    if what == "policy":
        return named | {"policy": FAST}, {VIOLATION}
    if what == "axis" and name == "all_reduce":
        other = "ep" if axis != "ep" else "tp"
        return named | {"axis": other}, {MISMATCH}
    return named | {"algorithm": "tree"}, {MISMATCH}


def queue_issued(
    session: Session,
    on: Stream,
    name: str,
    places: list[Place],
    dtype: int,
    operator: int,
    axis: str | None,
    root: int,
    ranks: list[int],
    ends: set[Status],
    absent: int,
    odd: int | None,
    astray: bool,
) -> None:
    """Queue what the ranks issued; `astray` is a rank along another axis, which may stop several groups or none."""
    world, mesh = session.world, on.mesh
    uses = [Use(places[rank], True, rank) for rank in ranks[: len(ranks) - absent]]
    groups = [tuple(range(len(mesh.devices)))] if axis is None else list(mesh.axes.groups(axis))
    disagreeing = {group: status for status in ends for group in groups if odd in group and len(group) > 1}
    cut = cut_of(mesh)
    settings = {"operator": operator, "axis": axis, "root": root, "cut": cut, "disagreeing": disagreeing}
    work = collective(mesh, name, places, dtype, **settings)  # type: ignore[arg-type]

    def apply() -> Any:
        if absent or astray or (disagreeing and cut()):  # which fails first is not known
            world.cloud()
            return []
        return work.apply()

    capture, on.capture = on.capture, None
    if any(not world.order.is_quiet(use.place.block) for use in uses):
        world.forget()
    first, *others = uses
    world.enqueue(on, Queued([first], apply, "collective"))
    for use in others:
        world.enqueue(on, Queued([use], list, "collective"))
    on.capture = capture
    if astray or (disagreeing and cut()):
        on.maybe |= ASYNCHRONOUS
    if absent:
        on.maybe |= ASYNCHRONOUS
        complete(session, on, name, ranks[-1], places, dtype, operator, axis, root)


def complete(
    session: Session,
    on: Stream,
    name: str,
    rank: int,
    places: list[Place],
    dtype: int,
    operator: int,
    axis: str | None,
    root: int,
) -> None:
    """The last rank issues too, whatever became of the others: the counts of the ranks agree again."""
    named, _ = issued(session, on.mesh, name, operator, axis, root, False)
    if session.chance(70):
        alone = axis is not None and any(group == (rank,) for group in on.mesh.axes.groups(axis))
        allowed = [MISMATCH, *ASYNCHRONOUS, *([OK] if alone else [])]  # nobody waits for a rank that meets none
        session.judged("tessStreamSynchronize", {"stream": on.handle}, allowed)
        on.errors, on.maybe = [], set()
        session.world.drain([on])
        session.world.cloud()
    arguments: dict[str, Any] = {"mesh": on.mesh.handle, "rank": rank, "collective": name}
    arguments |= {"buffer": places[rank].address, "count": places[rank].size // SIZES[dtype], "dtype": dtype}
    status, _ = session.judged("tessxIssue", arguments | {"stream": on.handle}, [OK], named=named)
    assert status is OK
    on.carried.append(3)
    capture, on.capture = on.capture, None
    session.world.enqueue(on, Queued([Use(places[rank], True, rank)], list, "collective"))
    on.capture = capture
    session.world.cloud()


def issue_refused(session: Session) -> None:
    """One rank's collective with an argument that cannot be."""
    world, stream = session.world, session.any("stream")
    on = world.streams.get(stream)
    if on is None:
        return
    place = session.place(32, devices=on.mesh.devices, step=4)
    if place is None or place.block.read_only:
        return
    arguments = {"mesh": on.mesh.handle, "rank": 0, "collective": "all_reduce", "buffer": place.address, "count": 8}
    arguments |= {"dtype": 9, "stream": stream}
    kinds = {"mesh": "mesh", "rank": "rank", "collective": "collective", "buffer": "device pointer", "count": "size"}
    kinds |= {"dtype": "dtype", "stream": "stream"}
    named: dict[str, Any] = {"op": 0, "axis": "dp"}
    if session.chance(40):
        wrong = session.pick(
            (
                ("op", 3),
                ("axis", "zz"),
                ("algorithm", "star"),
                ("descriptor", 5),
                ("policy", {}),
                ("axis", None),
                ("op", None),
            )
        )
        named |= dict((wrong,))
        session.judged("tessxIssue", arguments, {INVALID}, named=named)
        return
    name = session.pick(list(kinds))
    arguments[name], statuses = session._spoilt(kinds[name])
    session.judged("tessxIssue", arguments, statuses | ({CORRUPT} if session.corrupted else set()), named=named)


ISSUE_STEPS = {issue_together: 4, issue_refused: 2}

STEPS = LAUNCH_STEPS | COLLECTIVE_STEPS | ISSUE_STEPS | GRAPH_STEPS
