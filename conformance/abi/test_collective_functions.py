"""The collectives of the host interface (runtime specification, section 2)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements
from tessera_conformance.chapters.runtime.kit.mesh_session import DTYPE_IDS, SUM, opened
from tessera_conformance.marks import clause

COLLECTIVES = {
    "tessBroadcast": ("buffer", {"root": 0}),
    "tessReduceScatter": ("inout", {"op": SUM, "axis": "dp"}),
    "tessAllGather": ("inout", {"axis": "dp"}),
    "tessAllReduce": ("buffer", {"op": SUM, "axis": "dp"}),
}


@clause("RT-02-08")
@pytest.mark.parametrize("name", COLLECTIVES)
def test_the_host_interface_has_the_collective(impl, check, name):
    """Among one rank it succeeds and changes nothing (AMB-RT-03)."""
    session = opened(impl, check)
    buffer, options = COLLECTIVES[name]
    data = elements("int32", 1, -2, 3, 1 << 30)
    pointer = session.upload(data)
    given = {"mesh": session.mesh, buffer: pointer, "count": 4, "dtype": DTYPE_IDS["int32"], "stream": session.stream}
    session.ask(name, **given, **options)
    check.equal(session.download(pointer, len(data)).hex(), data.hex(), "the buffer")
