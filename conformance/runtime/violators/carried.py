"""Launches and collectives whose descriptor is missing, late or ignored (runtime spec 11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi.policy import Descriptor
from tessera_reference.adapter import make, messages, runtime
from tessera_reference.compilation import executables
from tessera_reference.graph import composites
from tessera_reference.graph.interpreter import RandomSource
from tessera_reference.numerics.trees import PAIRWISE, Tree
from tessera_reference.runtime import collectives, launches
from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.streams import Capture, Carried, GraphWork, Stream, Work

from .changes import Call, Given, answering, in_every_context

Shown = dict[str, Any]
SET = "tessxSetDescriptor"
SHOWN, REDUCED, CAPTURED = runtime._carried, collectives.reduced, Capture.add
READ, COMBINED = messages.read_descriptor, CollectiveWork._combined


def shown(clause: str, name: str, description: str, change: Callable[[Shown], Shown]) -> Violation:
    """Return a violation that changes the reported descriptor."""
    return replaced(clause, description, make, ("adapter.runtime._carried", lambda of: change(SHOWN(of))), name=name)


def kept(clause: str, name: str, description: str, owner: Any, attach: Callable[..., Carried]) -> Violation:
    """Return a violation that changes the descriptor attached to launches or collectives."""
    return replaced(clause, description, make, (owner, "Carried", attach), name=name)


def off(toggle: str) -> Callable[[Shown], Shown]:
    """Return a change that turns a toggle off."""
    return lambda carried: carried | {"stable": carried["stable"] | {toggle: False}}


TOLD_OTHERWISE = [
    shown("RT-11-01", "nameless", "does not tell which launch carries what", lambda of: of | {"name": "work"}),
    shown("RT-11-02", "pairwise_always", "carries the canonical order whatever was set",
         lambda of: of | {"reduction_order": PAIRWISE.to_json()}),
    shown("RT-11-05", "unstable_softmax", "carries softmax as unstable", off("softmax")),
    shown("RT-11-06", "unstable_log_sum_exp", "carries log-sum-exp as unstable", off("log_sum_exp")),
    shown("RT-11-07", "unstable_clamp", "carries clamp as unstable", off("clamp")),
]  # fmt: skip


def without_flag(name: str, descriptor: Descriptor, policy: Any) -> Carried:
    return Carried(name, descriptor, replace(policy, deterministic=0) if policy.allowFastMath else policy)


KEPT = [
    kept("RT-11-01", "without_flag", "does not see the flag of a launch", launches, without_flag),
    kept("RT-11-03", "collectives_by_default", "lets collectives carry the default", collectives,
         lambda name, descriptor, policy: Carried(name, Descriptor(), policy)),
]  # fmt: skip


def all_streams(adapter: Any, call: Call, given: Given) -> Shown:
    streams = adapter.runtime.stream(given["stream"]).mesh.streams
    return {"descriptors": [of for stream in sorted(streams) for of in call(stream=stream)["descriptors"]]}


def set_once(field: str, clause: str) -> Violation:
    """Return a violation that sets a field only the first time."""

    def answer(adapter: Any, call: Call, given: Given) -> Shown:
        context = adapter.runtime.context(given["context"])
        before = getattr(context.descriptor, field)
        answer = call(**given)
        if before != getattr(Descriptor(), field):
            context.descriptor = replace(context.descriptor, **{field: before})
        return answer

    return answering(clause, f"{field}_once", f"keeps the first {field} that is set", SET, answer)


def set_in_part(adapter: Any, call: Call, given: Given) -> Shown:
    try:
        return call(**given)
    except Refusal:
        whole = {name: value for name, value in given["descriptor"].items() if value in range(1 << 64)}
        call(**(given | {"descriptor": whole}))
        raise


def combined(name: str, description: str, change: Callable[[Tree | None], Tree | None]) -> Violation:
    """Return a violation whose collectives use another order than their descriptor's."""

    def reduced(*of: Any, tree: Tree | None) -> Any:
        return REDUCED(*of, tree=change(tree))

    return replaced("RT-11-02", description, make, ("runtime.collectives.reduced", reduced), name=name)


HEEDED = [
    answering("RT-11-01", "AllStreams", "tells what all streams carry", "tessxDescriptors", all_streams),
    in_every_context("RT-11-01", "AllContexts", "sets the descriptor of every context", SET),
    set_once("reduction_order", "RT-11-02"),
    set_once("seed", "RT-11-03"),
    set_once("stream", "RT-11-04"),
    combined("trees_ignored", "passes over the explicit trees of collectives",
        lambda tree: (None if tree is not None and tree.form == "explicit" else tree)),
]  # fmt: skip


def begins(
    clause: str, name: str, description: str, source: Callable[[launches.LaunchWork], RandomSource]
) -> Violation:
    """Return a violation whose launches begin their random numbers elsewhere."""
    return replaced(clause, description, make, ("runtime.launches.LaunchWork._source", property(source)), name=name)


def wrapped(name: str) -> Callable[[Shown], Descriptor]:
    """Return a reader of descriptors that takes a number modulo 2 to the 64."""
    return lambda message: READ(message | {key: message[key] % (1 << 64) for key in (name,) if key in message})


ON_MESH = executables.execute_on_mesh


def under_the_policy_of_now(work: Work, stream: Stream) -> Work:
    again = ON(work, stream)
    if isinstance(again, launches.LaunchWork | CollectiveWork):
        again.policy = stream.mesh.context.governing()
    return again


CARRIES, ON = GraphWork.carries, Work.on
REPLAYED = [
    replaced("RT-11-01", "replays a graph under the policy that is set then", make,
             ("runtime.streams.Work.on", under_the_policy_of_now), name="policy_of_the_replay"),
]  # fmt: skip

DRAWN = [
    replaced("RT-11-03", "draws from seed 0 where ranks meet", make, ("compilation.executables.execute_on_mesh",
        lambda *arguments, source, **options: ON_MESH(*arguments, **options)), name="seed_where_ranks_meet"),
    *(
        replaced(clause, f"takes the low 64 bits of any {name}", make,
                 ("adapter.messages.read_descriptor", wrapped(name)), name=f"{name}_wrapped")
        for clause, name in (("RT-11-03", "seed"), ("RT-11-04", "stream"))
    ),
    begins("RT-11-03", "launch_seed_low_word", "launches programs with the low word of the seed",
           lambda work: RandomSource(work.descriptor.seed % 2**32, work.descriptor.stream)),
    begins("RT-11-04", "launch_from_stream_0", "launches programs from stream 0 whatever their descriptor says",
           lambda work: RandomSource(work.descriptor.seed, 0)),
    begins("RT-11-03", "launch_seed_of_the_context", "draws by the descriptor that is set when the launch runs",
           lambda work: RandomSource(work.stream.mesh.context.descriptor.seed, work.descriptor.stream)),
    replaced("RT-11-03", "lets the descriptor's seed replace what an operation names", make,
        ("graph.composites.source_of",
        lambda draw, env: (env.seed or draw.seed or 0, composites.stream_of(draw.stream, env))), name="seed_over_all"),
]  # fmt: skip
