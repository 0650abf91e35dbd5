"""The topology as a graph, and what it says of chunks (collectives specification 3.3)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.collectives.kit.machines import (
    MEMORY,
    device,
    devices_of,
    machine,
    setting,
    text,
    without,
)
from tessera_conformance.chapters.runtime.kit.refusals import refused
from tessera_conformance.marks import clause

INVALID = "TESS_ERR_INVALID_VALUE"


@clause("COLL-03.3-01", "COLL-03.3-02")
def test_the_graph_has_every_gpu_nic_switch_and_host(impl, check):
    """Devices are named by their ids, the others by their names (AMB-COLL-42)."""
    nodes = check.returns(impl.collectives.topology(topology=text(nodes=3, per_node=2)))["nodes"]
    ids = devices_of(3, 2)
    expected = [(str(id_), "gpu") for id_ in ids] + [(f"n{id_}", "nic") for id_ in ids]
    expected += [(f"s{number}", "switch") for number in (1, 2, 3)] + [("fabric", "switch"), ("ethernet", "switch")]
    expected += [(f"h{number}", "host") for number in (1, 2, 3)]
    check.equal(sorted((node["name"], node["kind"]) for node in nodes), sorted(expected), "the nodes and their kinds")


@clause("COLL-03.3-01", "COLL-03.3-03", "COLL-03.3-06")
@pytest.mark.parametrize("nodes", [1, 2])
def test_every_edge_has_its_ends_bandwidth_latency_kind_and_credits(impl, check, nodes):
    """Each edge has the values of the descriptor, in bytes a second and picoseconds."""
    edges = check.returns(impl.collectives.topology(topology=text(nodes=nodes)))["edges"]
    actual = {record["name"]: record for record in edges}
    links = machine(nodes=nodes)["links"]
    check.equal(
        sorted(record["name"] for record in edges), sorted(link["name"] for link in links), "the names of edges"
    )
    for link in links:
        ends = {str(link["a"]), str(link["b"])}
        edge = actual[link["name"]]
        check.equal(sorted((edge["a"], edge["b"])), sorted(ends), f"the ends of {link['name']}")
        for member in ("bandwidth", "latency", "kind", "credits"):
            check.equal(edge[member], link[member], f"the {member} of {link['name']}")


@clause("COLL-03.3-01")
def test_a_link_without_kind_and_credits_is_given_both(impl, check):
    """PCIe inside a node, network between nodes, and one credit (AMB-COLL-42)."""

    def change(document):
        for link in document["links"]:
            del link["kind"], link["credits"]

    edges = check.returns(impl.collectives.topology(topology=text(change=change)))["edges"]
    for edge in edges:
        kind = "network" if edge["name"].startswith(("net", "rdma")) else "pcie"
        check.equal((edge["kind"], edge["credits"]), (kind, 1), f"the kind and the credits of {edge['name']}")


@clause("COLL-03.3-03")
@pytest.mark.parametrize("bandwidth", [0, -1])
def test_a_link_without_bandwidth_is_refused_by_name(impl, check, bandwidth):
    """The message names the link, what it has, and its ends."""
    change = setting("pcie20", bandwidth=bandwidth)
    answer = impl.collectives.topology(topology=text(change=change))
    refused(check, answer, INVALID, "pcie20", "bandwidth", str(bandwidth), "h2")
    check.returns(impl.collectives.topology(topology=text(change=setting("pcie20", bandwidth=1))))


@clause("COLL-03.3-06")
def test_a_link_of_negative_latency_is_refused_by_name(impl, check):
    """Its twin of no latency is accepted."""
    answer = impl.collectives.topology(topology=text(change=setting("nv11", latency=-1)))
    refused(check, answer, INVALID, "nv11", "latency", "-1", "s1")
    check.returns(impl.collectives.topology(topology=text(change=setting("nv11", latency=0))))


@clause("COLL-03.3-01")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without("nv21", "pcie21", "bus21"), ("21",)),
        (without("nv21", "pcie21", "rdma21"), ("21", "bus21")),
        (setting("net1", kind="nvlnk"), ("net1", "nvlnk", "nvlink")),
        (setting("net1", credits=0), ("net1", "credits")),
        (setting("net1", b="ethernett"), ("ethernett", "ethernet")),
        (setting("rdma10", b="h1"), ("h1",)),
        (lambda document: document["nics"].append({"name": "s1", "node": "h1"}), ("s1",)),
        (lambda document: document["nics"].append({"name": "n99", "node": "h9"}), ("h9",)),
        (lambda document: document["devices"].append(device(10)), ("10",)),
    ],
    ids=[
        "a device without links",
        "a device with links to nowhere",
        "an unknown kind",
        "no credits",
        "an unknown end",
        "RDMA to a host",
        "a NIC named as a switch",
        "a NIC on no node",
        "a device given twice",
    ],
)
def test_a_topology_that_makes_no_sense_is_refused(impl, check, change, words):
    """The message names what is wrong; the machine without the change is accepted."""
    check.returns(impl.collectives.topology(topology=text()))
    refused(check, impl.collectives.topology(topology=text(change=change)), INVALID, *words)


@clause("COLL-03.3-01")
@pytest.mark.parametrize("given", ["", "{", "no-such-machine", '{"format": 1}'])
def test_a_text_that_is_no_topology_is_refused(impl, check, given):
    """A text that is neither a name nor a descriptor is refused."""
    check.status(impl.collectives.topology(topology=given), INVALID)


# Chunks


@clause("COLL-03.3-05")
@pytest.mark.parametrize("credits", [3, 1, 6])
def test_no_more_chunks_are_in_flight_than_the_least_credits_of_a_link(impl, check, credits):
    """Every number from 1 on is allowed up to there (AMB-COLL-46); of the other links the least has 3."""
    given, most = text(change=setting("net1", credits=credits)), min(credits, 3)
    for inflight in range(1, most + 1):
        allowed = check.returns(impl.collectives.check_chunks(topology=given, chunk_bytes=1, max_inflight=inflight))
        check.equal(allowed["max_inflight"], {"least": 1, "most": most}, "the allowed range")
    for inflight in (most + 1, 0, -1, 1 << 40):
        answer = impl.collectives.check_chunks(topology=given, chunk_bytes=1, max_inflight=inflight)
        refused(check, answer, INVALID, "max_inflight", f"1 to {most}")


@clause("COLL-03.3-04")
@pytest.mark.parametrize("inflight", [1, 2, 3])
def test_the_chunks_in_flight_fit_the_smallest_device(impl, check, inflight):
    """Up to its memory by their number, rounded down; the message holds both ends of the range."""

    def change(document):
        document["devices"][2]["memory_bytes"] = MEMORY - 10

    given, most = text(change=change), (MEMORY - 10) // inflight
    for size in (1, 4096, most):
        allowed = check.returns(impl.collectives.check_chunks(topology=given, chunk_bytes=size, max_inflight=inflight))
        check.equal(allowed["chunk_bytes"], {"least": 1, "most": most}, "the allowed range")
    for size in (most + 1, 0, -4096, 1 << 50):
        answer = impl.collectives.check_chunks(topology=given, chunk_bytes=size, max_inflight=inflight)
        refused(check, answer, INVALID, "chunk_bytes", str(size), f"1 to {most}")


@clause("COLL-03.3-05", "COLL-03.3-04")
def test_a_machine_without_links_has_one_chunk_in_flight(impl, check):
    """A single device without links has one chunk in flight."""
    given = text(nodes=1, per_node=1, transports=())
    allowed = check.returns(impl.collectives.check_chunks(topology=given, chunk_bytes=MEMORY, max_inflight=1))
    check.equal(allowed, {"chunk_bytes": {"least": 1, "most": MEMORY}, "max_inflight": {"least": 1, "most": 1}})
    check.status(impl.collectives.check_chunks(topology=given, chunk_bytes=1, max_inflight=2), INVALID)
