"""Graphs that lose or change parts of the topology, and checks of chunks against other bounds (COLL 3.3)."""

import json
from functools import partial

from tessera_conformance.adapter import Refusal
from tessera_reference.collectives import selection
from tessera_reference.collectives.selection import Limits
from tessera_reference.mesh.topology import load, named

from ...ir.violators.changes import changed
from .changes import answered, lenient, refusing


def reported(kind, as_):
    """Return a change that reports nodes of a kind as another kind, or omits them."""

    def change(answer):
        answer["nodes"] = [
            node | {"kind": as_} if node["kind"] == kind else node
            for node in answer["nodes"]
            if as_ is not None or node["kind"] != kind
        ]

    return change


def each_edge(change):
    """Return a change of every edge."""

    def over(answer):
        for edge in answer["edges"]:
            change(edge)

    return over


def at_least(member, least):
    """Return a change of the question that raises a member of links."""

    def change(given):
        document = json.loads(given["topology"])
        for link in document["links"]:
            link[member] = max(link[member], least)
        return given | {"topology": json.dumps(document)}

    return change


def without_its_name(rejected):
    """Return the refusal with the path of the link alone."""
    return Refusal(rejected.code, rejected.phase, rejected.message.split(" (link")[0])


GRAPH = [
    changed("COLL-03.3-01", "unreachable_accepted", "accepts a device that no links join to the others",
            ("adapter.collectives.topology_of", lambda text: load(text) if text.startswith("{") else named(text))),
    answered("COLL-03.3-01", "devices_lost", "has the first device alone", "topology",
             lambda answer: answer.update(nodes=[node for node in answer["nodes"]
                                                 if node["kind"] != "gpu" or node is answer["nodes"][0]])),
    answered("COLL-03.3-01", "credits_of_one", "gives every link one credit", "topology",
             each_edge(lambda edge: edge.update(credits=1))),
    answered("COLL-03.3-02", "hosts_as_gpus", "takes hosts for GPUs", "topology", reported("host", "gpu")),
    answered("COLL-03.3-03", "bits_a_second", "tells bandwidths in bits", "topology",
             each_edge(lambda edge: edge.update(bandwidth=8 * edge["bandwidth"]))),
    lenient("COLL-03.3-03", "no_bandwidth", "accepts links without bandwidth", "topology", ".bandwidth",
            at_least("bandwidth", 1)),
    answered("COLL-03.3-06", "nanoseconds", "tells latencies in nanoseconds", "topology",
             each_edge(lambda edge: edge.update(latency=edge["latency"] // 1000))),
    refusing("COLL-03.3-06", "nameless_latency", "does not name the link of negative latency", "topology",
             ".latency", without_its_name),
]  # fmt: skip


# Chunks


def checking(
    clause,
    name,
    description,
    *,
    inflight=lambda topology: min((link.credits for link in topology.links), default=1),
    largest=lambda topology, inflight: min(device.memory_bytes for device in topology.devices) // inflight,
    least=1,
):
    """Return a violation with other bounds."""

    def check(topology, chunk_bytes, max_inflight):
        require = selection.require_within
        most = inflight(topology)
        require("check_chunks", "max_inflight", max_inflight, least, most)
        limit = largest(topology, max(max_inflight, 1))
        require("check_chunks", "chunk_bytes", chunk_bytes, least, limit)
        return Limits((1, limit), (1, most))

    return changed(clause, name, description, ("adapter.collectives.check_chunks", check))


def memory(topology):
    """Return the memory of every device."""
    return [device.memory_bytes for device in topology.devices]


OF_CHUNKS = partial(checking, "COLL-03.3-04")
OF_INFLIGHT = partial(checking, "COLL-03.3-05")

CHUNKS = [
    OF_CHUNKS("rounded_up", "rounds the room up", largest=lambda t, n: -(-min(memory(t)) // n)),
    OF_INFLIGHT("first_link", "takes the first link", inflight=lambda t: t.links[0].credits if t.links else 1),
]  # fmt: skip
