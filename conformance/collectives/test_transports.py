"""The transport that carries chunks from one device to another (collectives specification 1 and 3.2)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.collectives.kit.machines import TRANSPORTS, link, text, without
from tessera_conformance.chapters.runtime.kit.refusals import refused
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected

INVALID = "TESS_ERR_INVALID_VALUE"
UNSUPPORTED = "TESS_ERR_UNSUPPORTED"
CUT_OFF = "TESS_ERR_LAUNCH_FAILED"
VARIABLE = "TESSERA_COLL_PATH"

INSIDE, BETWEEN = (10, 11), (11, 20)
WAYS = {
    INSIDE: {"nvlink": ["nv10", "nv11"], "pcie": ["pcie10", "pcie11"], "rdma": ["bus10", "rdma10", "rdma11", "bus11"]},
    BETWEEN: {"rdma": ["bus11", "rdma11", "rdma20", "bus20"], "network": ["pcie11", "net1", "net2", "pcie20"]},
}
"""The links of each transport of `machine`, by the pair of devices."""


def taken(check, impl, ends, topology=None, **arguments):
    """Return the route between two devices."""
    return check.returns(
        impl.collectives.route(topology=topology or text(), source=ends[0], target=ends[1], **arguments)
    )


def is_path(check, actual, ends, path, fallback):
    """The route is the way of a transport."""
    check.equal(actual, {"path": path, "links": WAYS[ends][path], "fallback": fallback}, f"the route between {ends}")


@clause("COLL-03.2-01", "COLL-01-06", "COLL-03.2-05")
@pytest.mark.parametrize("given", [{}, {"path": "auto"}], ids=["left out", "auto"])
def test_nvlink_is_taken_within_a_node(impl, check, given):
    """Both ways, on both nodes, though PCIe and RDMA would do."""
    is_path(check, taken(check, impl, INSIDE, **given), INSIDE, "nvlink", False)
    back = taken(check, impl, (21, 20), **given)
    check.equal(back, {"path": "nvlink", "links": ["nv21", "nv20"], "fallback": False}, "the route back")


@clause("COLL-03.2-01")
def test_nvlink_is_taken_though_pcie_is_quicker(impl, check):
    """The transport is preferred, not the latency."""

    def change(document):
        for connection in document["links"]:
            connection["latency"] = 1 if connection["kind"] == "pcie" else 10**9

    is_path(check, taken(check, impl, INSIDE, text(change=change)), INSIDE, "nvlink", False)


@clause("COLL-03.2-02", "COLL-01-06")
@pytest.mark.parametrize("others", [(), ("network",), ("rdma", "network")], ids=["alone", "network", "all"])
def test_pcie_is_taken_within_a_node_without_nvlink(impl, check, others):
    """A fallback, which is said; a node whose NVLink does not reach one of the two is without it."""
    topology = text(nodes=2 if others else 1, transports=("pcie", *others))
    is_path(check, taken(check, impl, INSIDE, topology), INSIDE, "pcie", True)
    is_path(check, taken(check, impl, INSIDE, text(change=without("nv11"))), INSIDE, "pcie", True)


@clause("COLL-03.2-03", "COLL-01-06")
def test_rdma_is_taken_between_nodes(impl, check):
    """From the device by its NIC, past both hosts."""
    is_path(check, taken(check, impl, BETWEEN), BETWEEN, "rdma", False)
    is_path(check, taken(check, impl, BETWEEN, text(transports=("pcie", "rdma", "network"))), BETWEEN, "rdma", False)


@clause("COLL-03.2-03")
def test_rdma_is_taken_though_the_network_is_quicker(impl, check):
    """The transport is preferred, not the latency."""

    def change(document):
        for connection in document["links"]:
            connection["latency"] = 1 if connection["name"].startswith(("net", "pcie")) else 10**9

    is_path(check, taken(check, impl, BETWEEN, text(change=change)), BETWEEN, "rdma", False)


@clause("COLL-03.2-03")
@pytest.mark.parametrize("lost", ["rdma11", "bus20"])
def test_the_network_is_taken_where_a_device_has_no_rdma(impl, check, lost):
    """RDMA that reaches one of the two alone is not available; the other pair of devices still has it."""
    topology = text(change=without(lost))
    is_path(check, taken(check, impl, BETWEEN, topology), BETWEEN, "network", True)
    other = taken(check, impl, (10, 21), topology)
    check.equal(other["path"], "rdma", "the path of the other pair")


@clause("COLL-03.2-03")
def test_a_nic_behind_the_host_is_no_gpudirect(impl, check):
    """A device whose NIC hangs on its host alone goes by the network (AMB-COLL-43)."""

    def change(document):
        without("bus11")(document)
        document["links"].append(link("hostbus", "h1", "n11", 60_000_000_000, 1, "pcie", 8))

    is_path(check, taken(check, impl, BETWEEN, text(change=change)), BETWEEN, "network", True)


@clause("COLL-03.2-01", "COLL-03.2-02", "COLL-01-06")
@pytest.mark.parametrize("cut", ["nv10", "nv11"])
def test_a_cut_nvlink_falls_back_to_pcie(impl, check, cut):
    """Pairs without a cut keep their transport."""
    is_path(check, taken(check, impl, INSIDE, down=[cut]), INSIDE, "pcie", True)
    check.equal(taken(check, impl, (20, 21), down=[cut])["path"], "nvlink", "the path on the other node")


@clause("COLL-03.2-03", "COLL-01-06")
@pytest.mark.parametrize("cut", ["bus11", "rdma11", "rdma20", "bus20"])
def test_a_cut_rdma_falls_back_to_the_network(impl, check, cut):
    """Any link of the way may be cut."""
    is_path(check, taken(check, impl, BETWEEN, down=[cut]), BETWEEN, "network", True)


@clause("COLL-03.2-01", "COLL-01-06")
def test_another_way_of_the_same_transport_is_no_fallback(impl, check):
    """A second NVSwitch: of two ways the quicker one, and the other one when it is cut."""

    def change(document):
        document["switches"].append({"name": "spare", "node": "h1"})
        document["links"] += [link(f"spare{node}", node, "spare", 1, 600_000, "nvlink", 1) for node in INSIDE]

    actual = taken(check, impl, INSIDE, text(change=change))
    check.equal(actual["links"], ["nv10", "nv11"], "the links of least latency")
    actual = taken(check, impl, INSIDE, text(change=change), down=["nv11"])
    check.equal(actual, {"path": "nvlink", "links": ["spare10", "spare11"], "fallback": False}, "the other way")


@clause("COLL-01-06", "COLL-03.2-02", "COLL-03.2-03")
def test_where_every_way_is_cut_the_launch_fails(impl, check):
    """Both devices are named; down to the last way there is a route."""
    inside, between = ["nv10", "pcie10"], ["rdma20", "rdma21", "net2"]
    check.equal(taken(check, impl, INSIDE, down=inside)["path"], "rdma", "the last way inside of the node")
    answer = impl.collectives.route(topology=text(), source=10, target=11, down=[*inside, "bus10"])
    refused(check, answer, CUT_OFF, "10", "11")
    check.equal(taken(check, impl, BETWEEN, down=between[:2])["path"], "network", "the last way between nodes")
    answer = impl.collectives.route(topology=text(), source=11, target=20, down=between)
    refused(check, answer, CUT_OFF, "11", "20")


@clause("COLL-03.2-05")
@pytest.mark.parametrize(("ends", "path"), [(ends, path) for ends, ways in WAYS.items() for path in ways])
def test_a_path_that_is_asked_for_is_taken(impl, check, ends, path):
    """The requested path is taken, whatever auto would choose; it is no fallback."""
    is_path(check, taken(check, impl, ends, path=path), ends, path, False)


@clause("COLL-03.2-05")
@pytest.mark.parametrize(
    ("ends", "path", "transports", "there"),
    [
        (INSIDE, "nvlink", ("pcie", "rdma", "network"), ("pcie", "rdma")),
        (BETWEEN, "nvlink", TRANSPORTS, ("rdma", "network")),
        (BETWEEN, "pcie", TRANSPORTS, ("rdma", "network")),
        (BETWEEN, "rdma", ("nvlink", "pcie", "network"), ("network",)),
        (BETWEEN, "network", ("nvlink", "pcie", "rdma"), ("rdma",)),
    ],
)
def test_a_path_that_is_not_there_is_unsupported(impl, check, ends, path, transports, there):
    """The message names those that are; auto finds one of them."""
    topology = text(transports=transports)
    answer = impl.collectives.route(topology=topology, source=ends[0], target=ends[1], path=path)
    refused(check, answer, UNSUPPORTED, path, *there)
    check.equal(taken(check, impl, ends, topology)["path"], there[0], "the path of auto")


@clause("COLL-03.2-05")
def test_a_path_that_is_asked_for_and_cut_falls_back(impl, check):
    """A cut is no mistake of the caller (AMB-COLL-43)."""
    is_path(check, taken(check, impl, INSIDE, path="pcie", down=["pcie11"]), INSIDE, "nvlink", True)
    is_path(check, taken(check, impl, BETWEEN, path="rdma", down=["rdma20"]), BETWEEN, "network", True)


@clause("COLL-03.2-05")
@pytest.mark.parametrize(("given", "near"), [("nvlinc", "nvlink"), ("PCIe", "pcie"), ("rdna", "rdma")])
def test_an_unknown_path_is_refused_with_the_nearest_one(impl, check, given, near):
    """An unknown name is a mistake, not a wish."""
    refused(check, impl.collectives.route(topology=text(), source=10, target=11, path=given), INVALID, given, near)


@clause("COLL-03.2-05")
@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"source": 12}, "12"),
        ({"target": 0}, "0"),
        ({"source": 12, "target": 12}, "12"),
        ({"down": ["nv12"]}, "nv12"),
    ],
    ids=str,
)
def test_an_unknown_device_or_link_is_refused(impl, check, given, word):
    """A device or link that is unknown is refused by its name."""
    whole = {"source": 10, "target": 11, "down": []} | given
    refused(check, impl.collectives.route(topology=text(), **whole), INVALID, word)


# The environment


@clause("COLL-03.2-07")
@feature("auto-transport")
@pytest.mark.parametrize(("ends", "path"), [(INSIDE, "pcie"), (INSIDE, "rdma"), (BETWEEN, "network")])
def test_the_environment_overrides_auto(impl, check, ends, path):
    """It is what auto means then, so no fallback (AMB-COLL-13)."""
    for given in ({}, {"path": "auto"}):
        is_path(check, taken(check, impl, ends, environment={VARIABLE: path}, **given), ends, path, False)


@clause("COLL-03.2-07")
@feature("auto-transport")
def test_a_path_that_is_asked_for_wins_over_the_environment(impl, check):
    """The path of the request comes before that of the environment (AMB-COLL-13)."""
    actual = taken(check, impl, INSIDE, path="rdma", environment={VARIABLE: "pcie"})
    check.reading("AMB-COLL-13", "environment beats everything", actual["path"] == "pcie")
    is_path(check, actual, INSIDE, "rdma", False)


@clause("COLL-03.2-07")
@feature("auto-transport")
@pytest.mark.parametrize("value", ["auto", ""])
def test_auto_and_nothing_override_nothing(impl, check, value):
    """A variable of another name overrides nothing either."""
    is_path(check, taken(check, impl, INSIDE, environment={VARIABLE: value}), INSIDE, "nvlink", False)
    is_path(check, taken(check, impl, INSIDE, environment={"COLL_PATH": "pcie"}), INSIDE, "nvlink", False)


@clause("COLL-03.2-07")
@feature("auto-transport")
def test_an_override_that_is_not_there_is_passed_over(impl, check):
    """Between nodes there is no NVLink; the variable holds for every pair (AMB-COLL-45)."""
    given = {"topology": text(), "source": BETWEEN[0], "target": BETWEEN[1], "environment": {VARIABLE: "nvlink"}}
    answer = impl.collectives.route(**given)
    check.reading("AMB-COLL-45", "an override that does not fit is refused", isinstance(answer, Rejected))
    is_path(check, check.returns(answer), BETWEEN, "rdma", True)


@clause("COLL-03.2-07")
@feature("auto-transport")
def test_an_unknown_override_is_refused_by_its_variable(impl, check):
    """An unknown path in a variable is refused by the variable's name, with the nearest path."""
    answer = impl.collectives.route(topology=text(), source=10, target=11, environment={VARIABLE: "nvlinc"})
    refused(check, answer, INVALID, VARIABLE, "nvlinc", "nvlink")


@clause("COLL-03.2-07")
@feature("auto-transport")
def test_a_misspelled_variable_is_refused(impl, check):
    """A variable that begins with TESSERA_COLL_ and is none of the three is refused (AMB-COLL-45)."""
    answer = impl.collectives.route(topology=text(), source=10, target=11, environment={"TESSERA_COLL_PATHS": "pcie"})
    refused(check, answer, INVALID, "TESSERA_COLL_PATHS", VARIABLE)
