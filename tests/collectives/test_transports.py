"""Routes over transports: they connect, they use what is up, and they fail only where nothing connects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.links import BETWEEN_NODES, PATHS, WITHIN_A_NODE, route
from tessera_reference.mesh.topology import NAMES, End, named

KINDS = {"nvlink": {"nvlink"}, "pcie": {"pcie"}, "rdma": {"pcie", "rdma"}, "network": {"pcie", "network"}}
ENDS = st.integers(0, 7)
LINKS = {name: [link.name for link in named(name).links] for name in NAMES}
CUTS = {name: st.lists(st.sampled_from(links), max_size=12, unique=True) for name, links in LINKS.items()}


def walked(name: str, source: int, links: tuple[str, ...]) -> End:
    """Where the links lead."""
    at: End = source
    by_name = {link.name: link for link in named(name).links}
    for each in links:
        assert at in (by_name[each].a, by_name[each].b)
        at = by_name[each].other(at)
    return at


@pytest.mark.parametrize("name", ["two-nodes", "mixed", "eight-sm90"])
@given(data=st.data(), source=ENDS, target=ENDS)
def test_a_route_leads_to_its_target_over_links_of_its_kinds_that_are_up(
    name: str, data: st.DataObject, source: int, target: int
) -> None:
    topology, down = named(name), data.draw(CUTS[name])
    if topology.route(source, target, frozenset(down)) is None:
        with pytest.raises(Failure, match="no way between") as caught:
            route(topology, source, target, down=down)
        assert caught.value.status is Status.TESS_ERR_LAUNCH_FAILED
        return
    found = route(topology, source, target, down=down)
    assert walked(name, source, found.links) == target
    assert not set(found.links) & set(down)
    kinds = {link.kind for link in topology.links if link.name in found.links}
    assert kinds <= KINDS.get(found.path, set(PATHS))
    assert found.path in KINDS or found.path == ("local" if source == target else "mixed")


@pytest.mark.parametrize("name", ["two-nodes", "mixed"])
def test_every_pair_has_its_preferred_transport(name: str) -> None:
    topology = named(name)
    for one in topology.devices:
        for other in topology.devices:
            if one is not other:
                preferred = WITHIN_A_NODE if one.node == other.node else BETWEEN_NODES
                found = route(topology, one.id, other.id)
                assert (found.path, found.fallback) == (preferred[0], False)


def test_a_device_reaches_itself_whatever_is_down() -> None:
    found = route(named("two-nodes"), 3, 3, path="rdma", down=LINKS["two-nodes"])
    assert (found.path, found.links, found.fallback) == ("local", (), False)


def test_links_of_several_transports_are_the_last_way() -> None:
    """Device 0 has neither its NIC nor its host: another device of its node passes its data on."""
    found = route(named("two-nodes"), 0, 4, down=["bus0", "pcie0"])
    assert (found.path, found.links[0], found.fallback) == ("mixed", "nvlink0", True)
