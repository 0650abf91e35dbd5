"""The canonical pipelines: data-parallel training, mixture of experts, parameter prefetch (collectives spec, 7)."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from tessera_conformance.chapters.collectives.kit.machines import devices_of, machine
from tessera_conformance.chapters.collectives.kit.timelines import (
    MIB,
    MICROSECOND,
    in_flight,
    most_at_once,
    of,
    shared,
    span,
)
from tessera_conformance.chapters.collectives.kit.wires import of_values
from tessera_conformance.chapters.runtime.kit.refusals import refused
from tessera_conformance.marks import clause, feature

KIB = 1 << 10
LAYERS = 4
LAYER = 900 * MICROSECOND
"""Longer than the collectives of a layer take."""


def topology(nodes=1, per_node=4):
    """The JSON text of a machine with credits enough."""
    document = machine(nodes=nodes, per_node=per_node)
    for link in document["links"]:
        link["credits"] = 64
    return json.dumps(document)


def pipeline(impl, check, kind, **arguments):
    """A pipeline's answer; and its units by id."""
    usual = {"layers": LAYERS, "bytes": 16 * MIB, "picoseconds": LAYER, "topology": topology()}
    answer = check.returns(impl.collectives.pipeline(kind=kind, **{**usual, **arguments}))
    return answer, {unit["id"]: unit for unit in answer["units"]}


def started(timeline, name):
    """The first start of a unit."""
    return span(of(timeline, name))[0]


def ended(timeline, name):
    """The last end of a unit."""
    return span(of(timeline, name))[1]


@feature("two-queue", "data-parallel-pipeline")
@clause("COLL-07.1-01")
@pytest.mark.parametrize("layers", [1, 2, 5])
def test_gradients_are_scattered_layer_by_layer(impl, check, layers):
    """From the last layer to the first: each as soon as it is computed, while the layers before it compute theirs."""
    actual, units = pipeline(impl, check, "data_parallel", layers=layers)
    timeline = actual["timeline"]
    scattering = [unit for unit in units.values() if unit.get("collective", {}).get("operation") == "reduce_scatter"]
    check.equal(sorted(slot["id"] for slot in scattering), [f"scatter{k}" for k in range(layers)], "one for each layer")
    for layer in range(layers):
        check.equal(units[f"scatter{layer}"]["after"], [f"backward{layer}"], "needs the layer's gradients, no others")
        check.equal(units[f"scatter{layer}"]["collective"]["bytes"], 16 * MIB, "all gradients of the layer")
        begun = started(timeline, f"scatter{layer}")
        check.equal(begun, ended(timeline, f"backward{layer}"), f"scatter{layer} starts once backward{layer} has ended")
        if layer:
            following = of(timeline, f"backward{layer - 1}", device=devices_of(1, 4)[0])
            chunks = of(timeline, f"scatter{layer}", device=devices_of(1, 4)[0])
            check.equal(following[0]["start"], begun, f"backward{layer - 1} does not wait for it")
            check.true(shared(chunks, following) > 0, f"scatter{layer} travels beside backward{layer - 1}")


@feature("two-queue", "data-parallel-pipeline")
@clause("COLL-07.1-02")
@pytest.mark.parametrize("size", [16 * MIB, 33 * MIB + 12])
def test_four_to_eight_chunks_of_gradients_are_in_flight(impl, check, size):
    """While as many remain; never more than eight."""
    timeline = pipeline(impl, check, "data_parallel", bytes=size)[0]["timeline"]
    for device in devices_of(1, 4):
        for layer in range(LAYERS):
            slots = of(timeline, f"scatter{layer}", device=device)
            check.true(most_at_once(slots) <= 8, "at most eight at a time", most_at_once(slots))
            for time in sorted({slot["start"] for slot in slots} | {slot["end"] for slot in slots}):
                left = sum(slot["end"] > time for slot in slots)
                check.true(in_flight(slots, time) >= min(4, left), f"four in flight at {time}, {left} are left")


@feature("two-queue", "data-parallel-pipeline")
@clause("COLL-07.1-04")
@pytest.mark.parametrize("size", [MIB, 2 * MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB + 4, 5 * MIB + 20])
def test_chunks_of_gradients_have_512_kib_to_2_mib(impl, check, size):
    """The chunks are issued at the size that was asked for, as many as the bytes make."""
    actual, units = pipeline(impl, check, "data_parallel", bytes=size, layers=1)
    chunk = units["scatter0"]["collective"]["chunk_bytes"]
    check.true(512 * KIB <= chunk <= 2048 * KIB, "512 KiB to 2 MiB", chunk)
    slots = of(actual["timeline"], "scatter0", device=devices_of(1, 4)[0])
    check.equal(len(slots), -(-size // chunk), "chunks")


@feature("two-queue", "data-parallel-pipeline")
@clause("COLL-07.1-03")
def test_weights_of_a_layer_are_gathered_shortly_before_it_runs(impl, check):
    """While the layer before runs: neither all at the beginning, nor at first need."""
    actual, units = pipeline(impl, check, "data_parallel")
    timeline = actual["timeline"]
    for layer in range(LAYERS):
        check.true(f"gather{layer}" in units[f"layer{layer}"]["after"], f"layer{layer} needs its weights")
        check.equal(units[f"gather{layer}"]["collective"]["operation"], "all_gather")
        check.true(ended(timeline, f"gather{layer}") <= started(timeline, f"layer{layer}"), "gathered before")
        if layer:
            begun = started(timeline, f"gather{layer}")
            check.true(started(timeline, f"layer{layer - 1}") <= begun, "not before the layer before begins", begun)
            check.equal(
                started(timeline, f"layer{layer}"), ended(timeline, f"layer{layer - 1}"), "compute does not idle for it"
            )


@feature("two-queue", "parameter-prefetch")
@clause("COLL-07.3-01")
@pytest.mark.parametrize("layers", [2, 6])
def test_the_next_gather_starts_when_a_layer_begins(impl, check, layers):
    """On every device; not later by more than a tenth of the layer."""
    timeline = pipeline(impl, check, "prefetch", layers=layers)[0]["timeline"]
    for device in devices_of(1, 4):
        for layer in range(layers - 1):
            begun = of(timeline, f"layer{layer}", device=device)[0]["start"]
            gather = of(timeline, f"gather{layer + 1}", device=device)[0]["start"]
            check.true(begun <= gather <= begun + LAYER // 10, f"gather{layer + 1} starts with layer{layer}", gather)


@feature("two-queue", "parameter-prefetch")
@clause("COLL-07.3-02")
@pytest.mark.parametrize("picoseconds", [LAYER, 20 * MICROSECOND])
def test_prefetched_weights_are_awaited_right_before_use(impl, check, picoseconds):
    """The layer that uses them awaits them, and nothing else; no layer waits longer than for its weights."""
    actual, units = pipeline(impl, check, "prefetch", picoseconds=picoseconds)
    timeline = actual["timeline"]
    for layer in range(LAYERS):
        awaiting = [
            unit["id"] for unit in units.values() if f"gather{layer}" in unit["after"] and unit["queue"] == "compute"
        ]
        check.equal(awaiting, [f"layer{layer}"], f"computations that await gather{layer}")
        needed = ended(timeline, f"gather{layer}")
        before = ended(timeline, f"layer{layer - 1}") if layer else 0
        check.equal(started(timeline, f"layer{layer}"), max(needed, before), f"layer{layer} starts when it can")


@feature("two-queue", "all-to-all")
@clause("COLL-07.2-02")
def test_every_bucket_is_exchanged_by_itself(impl, check):
    """Experts compute one bucket while others travel."""
    actual, units = pipeline(impl, check, "moe")
    timeline = actual["timeline"]
    for bucket in range(LAYERS):
        for name, after in ((f"dispatch{bucket}", "route"), (f"combine{bucket}", f"expert{bucket}")):
            check.equal(units[name]["collective"]["operation"], "all_to_all", name)
            check.equal(units[name]["after"], [after], f"{name} needs")
        check.equal(units[f"expert{bucket}"]["after"], [f"dispatch{bucket}"], "an expert needs its own bucket")
    device = devices_of(1, 4)[0]
    first, last = (of(timeline, f"{name}", device=device) for name in ("expert0", f"dispatch{LAYERS - 1}"))
    check.true(first[0]["start"] < last[-1]["end"], "the first bucket is computed before the last one is there")


@feature("two-queue", "all-to-all")
@clause("COLL-07.2-03")
def test_packing_takes_no_place_in_the_compute_queue(impl, check):
    """The send packs: what leaves awaits the routing alone, and the compute queue has the routing and experts only."""
    actual, units = pipeline(impl, check, "moe")
    computing = sorted(unit["id"] for unit in units.values() if unit["queue"] == "compute")
    check.equal(computing, [*(f"expert{bucket}" for bucket in range(LAYERS)), "route"], "units of the compute queue")
    run = {slot["id"] for slot in of(actual["timeline"], queue="compute")}
    check.equal(sorted(run), computing, "what runs there")
    for bucket in range(LAYERS):
        check.true("pack" in units[f"dispatch{bucket}"].get("fused", []), "packing is fused with the send")
    check.equal(started(actual["timeline"], "dispatch0"), ended(actual["timeline"], "route"), "nothing lies between")


@feature("two-queue", "all-to-all")
@clause("COLL-07.2-04")
@pytest.mark.parametrize("size", [16 * MIB, 6 * MIB + 4])
def test_tokens_are_cast_before_they_travel(impl, check, size):
    """Half of their bytes travel: bf16 for fp32; the send casts."""
    units = pipeline(impl, check, "moe", bytes=size)[1]
    for bucket in range(LAYERS):
        for name in (f"dispatch{bucket}", f"combine{bucket}"):
            check.equal(units[name]["collective"]["bytes"], size // 2, f"bytes of {name}")
            check.true("cast" in units[name].get("fused", []), "casting is fused with the send")


FEATURES = 3
CHOSEN = [[0, 5, 1, 1, 4], [2, 2, 2, 3], [], [4, 0, 5, 3, 1, 1, 2]]
"""The experts of the tokens of four ranks, some of which get none."""


def token(rank, at):
    """A token with its place in it, exact in bf16."""
    return [Fraction(rank + 1), Fraction(at), Fraction(-1, 4)]


def tokens(chosen, value=token):
    """The tokens of every rank."""
    return [
        of_values("fp32", [v for at in range(len(own)) for v in value(rank, at)], (len(own), FEATURES))
        for rank, own in enumerate(chosen)
    ]


@feature("all-to-all")
@clause("COLL-07.2-01", "COLL-07.2-02")
@pytest.mark.parametrize("count", [4, 8, 12, 40])
@pytest.mark.parametrize("dtype", ["bf16", None])
def test_tokens_come_to_their_experts_bucket_by_bucket(impl, check, count, dtype):
    """Each block of a bucket holds tokens of one expert, all of them, in their order; of 40 many have none at all."""
    chosen = [[expert * 7 % count for expert in own] for own in CHOSEN]
    ranks, buckets = len(chosen), count // len(chosen)
    request = {"inputs": tokens(chosen), "experts": chosen, "count": count}
    actual = check.returns(impl.collectives.dispatch(**request, **({"dtype": dtype} if dtype else {})))["buckets"]
    check.equal(
        [bucket_run["experts"] for bucket_run in actual],
        [[r * buckets + b for r in range(ranks)] for b in range(buckets)],
    )
    for bucket in actual:
        chosen_by = [
            [[at for at, e in enumerate(own) if e == expert] for own in chosen] for expert in bucket["experts"]
        ]
        rows = max(len(own) for sources in chosen_by for own in sources)
        check.equal(
            [bucket["rows"], bucket["counts"]], [rows, [[len(own) for own in choices] for choices in chosen_by]]
        )
        for rank, output in enumerate(bucket["outputs"]):
            expected = [
                token(source, own[at]) if at < len(own) else [Fraction(0)] * FEATURES
                for source, own in enumerate(chosen_by[rank])
                for at in range(rows)
            ]
            values = [value for row in expected for value in row]
            check.bits(output, of_values(dtype or "fp32", values, (ranks * rows, FEATURES)), f"tokens of rank {rank}")


@feature("all-to-all")
@clause("COLL-07.2-04")
def test_what_travels_is_rounded_once(impl, check):
    """Ties to even, subnormals: the bits of a cast of each token."""
    values = [Fraction(257), Fraction(259), Fraction(-3, 1 << 135)]
    chosen = [[1, 0], [0, 1]]
    inputs = tokens(chosen, lambda rank, at: values)
    actual = check.returns(impl.collectives.dispatch(inputs=inputs, experts=chosen, count=2, dtype="bf16"))
    check.equal(len(actual["buckets"]), 1)
    for output in actual["buckets"][0]["outputs"]:
        check.bits(output, of_values("bf16", values * 2, (2, FEATURES)))


@feature("all-to-all")
@clause("COLL-07.2-04")
@pytest.mark.parametrize("wire", ["fp16", "fp8_e4m3", "fp8_e5m2"])
def test_tokens_travel_in_the_dtype_that_is_asked_for(impl, check, wire):
    """A value that each narrow dtype rounds to another number, and one that all of them hold."""
    values = [Fraction(1), Fraction(2109, 2048), Fraction(-171, 128)]
    inputs = tokens([[1, 0], [0, 1]], lambda rank, at: values)
    actual = check.returns(impl.collectives.dispatch(inputs=inputs, experts=[[1, 0], [0, 1]], count=2, dtype=wire))
    for output in actual["buckets"][0]["outputs"]:
        check.bits(output, of_values(wire, values * 2, (2, FEATURES)))


WRONG = {
    "an expert that is not there": ({"experts": [[4], [0]]}, "TESS_ERR_INVALID_VALUE", ["expert 4", "0 to 3"]),
    "experts that do not divide": ({"count": 3}, "TESS_ERR_INVALID_VALUE", ["3", "2"]),
    "too few experts": ({"experts": [[0], []]}, "TESS_ERR_INVALID_VALUE", ["rank 1"]),
    "experts of one rank": ({"experts": [[0]]}, "TESS_ERR_INVALID_VALUE", ["2"]),
    "an unknown dtype": ({"dtype": "bf17"}, "TESS_ERR_INVALID_VALUE", []),
}


@feature("all-to-all")
@clause("COLL-07.2-01")
@pytest.mark.parametrize(("wrong", "status", "words"), WRONG.values(), ids=WRONG)
def test_tokens_without_an_expert_are_refused(impl, check, wrong, status, words):
    """Tokens for an expert that is not there are refused, with the allowed experts."""
    given = {"inputs": tokens([[0], [1]]), "experts": [[0], [1]], "count": 4, **wrong}
    refused(check, impl.collectives.dispatch(**given), status, *words)


@feature("two-queue")
@clause("COLL-04.1-01")
@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"kind": "parallel"}, ["data_parallel"]), ({"layers": 0}, ["layers"]), ({"bytes": -1}, ["bytes"])],
)
def test_a_pipeline_that_is_not_there_is_refused(impl, check, wrong, words):
    """A pipeline of another name is refused, with the allowed names."""
    given = {"kind": "prefetch", "layers": 2, "bytes": 8, "picoseconds": 1, "topology": topology(), **wrong}
    refused(check, impl.collectives.pipeline(**given), "TESS_ERR_INVALID_VALUE", *words)
