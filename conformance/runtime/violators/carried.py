"""Launches and collectives whose descriptor is missing, late or ignored (runtime spec 11)."""

from dataclasses import replace

from tessera_conformance.strength import Around
from tessera_reference.abi.policy import Descriptor
from tessera_reference.graph import composites
from tessera_reference.graph.interpreter import RandomSource
from tessera_reference.numerics.trees import PAIRWISE
from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.streams import Carried

from .changes import answering, broken, executing, in_every_context, result

SET = "tessxSetDescriptor"


def shown(clause, name, description, change):
    """Return a violation that changes the reported descriptor."""
    return broken(clause, name, description, "adapter.runtime._carried", result(change))


def off(toggle):
    return lambda carried: carried | {"stable": carried["stable"] | {toggle: False}}


def all_streams(adapter, call, given):
    streams = adapter.runtime.stream(given["stream"]).mesh.streams
    return {"descriptors": [of for stream in sorted(streams) for of in call(stream=stream)["descriptors"]]}


def set_once(field, clause):
    """Return a violation that sets a field only the first time."""

    def answer(adapter, call, given):
        context = adapter.runtime.context(given["context"])
        before = getattr(context.descriptor, field)
        answer = call(**given)
        if before != getattr(Descriptor(), field):
            context.descriptor = replace(context.descriptor, **{field: before})
        return answer

    return answering(clause, f"{field}_once", f"keeps the first {field} that is set", SET, answer)


def begins(clause, name, description, source):
    """Return a violation whose launches begin their random numbers elsewhere; `source` gives seed and stream."""
    substitute = property(lambda work: RandomSource(*source(work)))
    return broken(clause, name, description, "runtime.launches.LaunchWork._source", substitute)


def under_the_policy_of_now(usual):
    def on(work, stream):
        again = usual(work, stream)
        if isinstance(again, LaunchWork | CollectiveWork):
            again.policy = stream.mesh.context.governing()
        return again

    return on


VIOLATORS = [
    executing("RT-11-04", "stream_of_the_rank", "draws from another stream on each rank", lambda work, code, rank, of:
        code.run(of, work.grid, work.block, RandomSource(work.descriptor.seed, work.descriptor.stream + rank))),
    shown("RT-11-01", "nameless", "does not tell which launch carries what", lambda of: of | {"name": "work"}),
    shown("RT-11-02", "pairwise_always", "carries the canonical order whatever was set",
         lambda of: of | {"reduction_order": PAIRWISE.to_json()}),
    shown("RT-11-05", "unstable_softmax", "carries softmax as unstable", off("softmax")),
    shown("RT-11-06", "unstable_log_sum_exp", "carries log-sum-exp as unstable", off("log_sum_exp")),
    shown("RT-11-07", "unstable_clamp", "carries clamp as unstable", off("clamp")),
    broken("RT-11-01", "without_flag", "does not see the flag of a launch", "runtime.launches.Carried",
        lambda name, descriptor, policy: Carried(
            name, descriptor, replace(policy, deterministic=0) if policy.allowFastMath else policy)),
    broken("RT-11-03", "collectives_by_default", "lets collectives carry the default", "runtime.collectives.Carried",
        lambda name, descriptor, policy: Carried(name, Descriptor(), policy)),
    answering("RT-11-01", "AllStreams", "tells what all streams carry", "tessxDescriptors", all_streams),
    in_every_context("RT-11-01", "AllContexts", "sets the descriptor of every context", SET),
    set_once("reduction_order", "RT-11-02"),
    set_once("seed", "RT-11-03"),
    set_once("stream", "RT-11-04"),
    broken("RT-11-02", "trees_ignored", "passes over the explicit trees of collectives", "runtime.collectives.reduced",
        Around(lambda usual: lambda *of, tree: usual(*of, tree=None if tree and tree.form == "explicit" else tree))),
    broken("RT-11-01", "policy_of_the_replay", "replays a graph under the policy that is set then",
        "runtime.streams.Work.on", Around(under_the_policy_of_now)),
    broken("RT-11-03", "seed_where_ranks_meet", "draws from seed 0 where ranks meet",
        "compilation.executables.execute_on_mesh",
        Around(lambda usual: lambda *arguments, source, **options: usual(*arguments, **options))),
    *(broken(clause, f"{name}_wrapped", f"takes the low 64 bits of any {name}", "adapter.messages.read_descriptor",
        Around(lambda usual, name=name: lambda message: usual(
            message | {key: message[key] % (1 << 64) for key in (name,) if key in message})))
        for clause, name in (("RT-11-03", "seed"), ("RT-11-04", "stream"))),
    begins("RT-11-03", "launch_seed_low_word", "launches programs with the low word of the seed",
        lambda work: (work.descriptor.seed % 2**32, work.descriptor.stream)),
    begins("RT-11-04", "launch_from_stream_0", "launches programs from stream 0 whatever their descriptor says",
        lambda work: (work.descriptor.seed, 0)),
    begins("RT-11-03", "launch_seed_of_the_context", "draws by the descriptor that is set when the launch runs",
        lambda work: (work.stream.mesh.context.descriptor.seed, work.descriptor.stream)),
    broken("RT-11-03", "seed_over_all", "lets the descriptor's seed replace what an operation names",
        "graph.composites.source_of",
        lambda draw, env: (env.seed or draw.seed or 0, composites.stream_of(draw.stream, env))),
]  # fmt: skip
