"""Graphs that lose or change parts of the topology, and checks of chunks against other bounds (COLL 3.3)."""

import json

from tessera_conformance.adapter import Refusal
from tessera_reference.collectives.selection import Limits, require_within
from tessera_reference.mesh.topology import load, named

from ...ir.violators.changes import changed
from .changes import answered, at, each, lenient, refusing


def first_device(answer):
    first = answer["nodes"][0]
    return answer | {"nodes": [node for node in answer["nodes"] if node["kind"] != "gpu" or node is first]}


def with_bandwidth(given):
    document = json.loads(given["topology"])
    for link in document["links"]:
        link["bandwidth"] = max(link["bandwidth"], 1)
    return given | {"topology": json.dumps(document)}


# Chunks


def checking(clause, name, description, most=min, room=lambda memory, inflight: memory // inflight):
    """Return a violation with other bounds, by the credits of the links and the least memory of a device."""

    def check(usual, topology, chunk_bytes, max_inflight):
        credits = most([link.credits for link in topology.links] or [1])
        require_within("check_chunks", "max_inflight", max_inflight, 1, credits)
        limit = room(min(device.memory_bytes for device in topology.devices), max(max_inflight, 1))
        require_within("check_chunks", "chunk_bytes", chunk_bytes, 1, limit)
        return Limits((1, limit), (1, credits))

    return at("adapter.collectives.check_chunks")(clause, name, description, check)


VIOLATIONS = [
    changed("COLL-03.3-01", "unreachable_accepted", "accepts a device that no links join to the others",
            ("adapter.collectives.topology_of", lambda text: load(text) if text.startswith("{") else named(text))),
    answered("COLL-03.3-01", "devices_lost", "has the first device alone", "topology", first_device),
    answered("COLL-03.3-01", "credits_of_one", "gives every link one credit", "topology",
             each("edges", lambda edge: {"credits": 1})),
    answered("COLL-03.3-02", "hosts_as_gpus", "takes hosts for GPUs", "topology",
             each("nodes", lambda node: {"kind": node["kind"].replace("host", "gpu")})),
    answered("COLL-03.3-03", "bits_a_second", "tells bandwidths in bits", "topology",
             each("edges", lambda edge: {"bandwidth": 8 * edge["bandwidth"]})),
    lenient("COLL-03.3-03", "no_bandwidth", "accepts links without bandwidth", "topology", ".bandwidth",
            with_bandwidth),
    answered("COLL-03.3-06", "nanoseconds", "tells latencies in nanoseconds", "topology",
             each("edges", lambda edge: {"latency": edge["latency"] // 1000})),
    refusing("COLL-03.3-06", "nameless_latency", "does not name the link of negative latency", "topology", ".latency",
             lambda rejected: Refusal(rejected.code, rejected.phase, rejected.message.split(" (link")[0])),
    checking("COLL-03.3-04", "rounded_up", "rounds the room up", room=lambda memory, inflight: -(-memory // inflight)),
    checking("COLL-03.3-05", "first_link", "takes the first link", most=lambda credits: credits[0]),
]  # fmt: skip
