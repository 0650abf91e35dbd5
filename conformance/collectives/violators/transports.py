"""Routes over the wrong transport, over cut links, or against attribute and environment (COLL 1 and 3.2)."""

from tessera_conformance.adapter import Refusal

from ...ir.violators.changes import changed, nothing
from .changes import answered, asked, at, left_out, lenient, refusing


def unsupported(rejected):
    """Return the refusal with the status TESS_ERR_UNSUPPORTED."""
    return Refusal("TESS_ERR_UNSUPPORTED", rejected.phase, rejected.message)


def first_cut_alone(usual, topology, source, target, path, down):
    within = topology.device(source).node == topology.device(target).node
    return usual(topology, source, target, path, down if within else frozenset())


VIOLATIONS = [
    changed("COLL-01-06", "network_everywhere", "takes the network between nodes",
        ("collectives.links.BETWEEN_NODES", ("network",))),
    refusing("COLL-01-06", "cut_off_unsupported", "tells what is cut off as unsupported", "route", "no way",
             unsupported),
    changed("COLL-03.2-01", "least_latency", "takes the quickest way of all",
        ("collectives.links._way", lambda topology, source, target, path, down: topology.route(source, target, down))),
    asked("COLL-03.2-01", "cut_nvlink_used", "uses NVLink that is cut", "route",
          lambda given: given | {"down": [link for link in given.get("down", []) if not link.startswith("nv")]}),
    answered("COLL-03.2-01", "nvlink_as_fallback", "tells NVLink as a fallback", "route",
             lambda answer: answer | {"fallback": True}),
    answered("COLL-03.2-02", "fallback_not_told", "does not tell a fallback", "route",
             lambda answer: answer | {"fallback": False}),
    changed("COLL-03.2-03", "past_hosts", "takes RDMA through hosts", ("collectives.links._carrying",
        lambda topology, path: (link for link in topology.links if link.kind in (path, "pcie")))),
    at("collectives.links._way")("COLL-03.2-03", "cut_rdma_used", "uses RDMA that is cut", first_cut_alone),
    changed("COLL-03.2-05", "absent_path_falls_back", "falls back from a path that is not there",
            ("collectives.links._require_present", nothing)),
    refusing("COLL-03.2-05", "unknown_path_unsupported", "tells an unknown path as unsupported", "route", "path ",
             unsupported),
    lenient("COLL-03.2-05", "unknown_link_ignored", "ignores an unknown link that is down", "route", "link ",
            left_out("down")),
    changed("COLL-03.2-07", "misspelled_ignored", "ignores a misspelled variable",
            ("collectives.links.require_variables", nothing)),
    answered("COLL-03.2-07", "override_as_fallback", "tells an override as a fallback", "route",
             lambda answer: answer | {"fallback": answer["path"] not in ("nvlink", "rdma")}),
]  # fmt: skip
