"""Sends and receives of programs: what is said where they do not meet, and ranks under any schedule."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.programs import run_program
from tessera_reference.graph.execution import execute_on_mesh
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.module import Module
from tessera_reference.ir.targets import DEFAULT, target_of
from tessera_reference.levels.texts import read_at
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

T = "tensor<4xint32>"


def module(*lines: str, ranks: int = 3) -> Module:
    """A module with the function @f of one vector."""
    text = "\n".join(
        [
            '"builtin.module"() ({',
            f'"tessera.graph.mesh"() {{sym_name = "g", axes = ["dp"], shape = [{ranks}]}} : () -> ()',
            f'"tessera.graph.func"() ({{\n^bb0(%x: {T}):',
            *lines,
            f'}}) {{sym_name = "f", function_type = ({T}) -> ({T})}} : () -> ()',
            '}) {sym_name = "m"} : () -> ()',
        ]
    )
    (found,) = read_at("graph", text, target_of(DEFAULT))
    return found


def inputs(ranks: int = 3) -> list[dict[str, Array]]:
    """What each rank is given."""
    return [{"x": Array(dtype("int32"), np.arange(4, dtype=np.int32) + 10 * rank)} for rank in range(ranks)]


SEND = f"%f = tessera.collective.send %x : {T} {{shift=1, tag=5}}"
RECV = f"%g = tessera.collective.recv %x : {T} {{shift=-1, tag=5}}"
RETURN = f'"tessera.graph.return"(%y) : ({T}) -> ()'


def test_the_circle_is_named_with_its_ranks_and_calls() -> None:
    found = module(SEND, "%s = tessera.await %f", RECV, "%y = tessera.await %g", RETURN)
    with pytest.raises(Failure) as failure:
        run_program(found, found.functions["f"], inputs())
    assert failure.value.status is Status.TESS_ERR_COLLECTIVE_MISMATCH
    text = str(failure.value)
    assert (
        "rank 0 waits with a send of tag 5 for rank 1, which waits with a send of tag 5 for rank 2, "
        "which waits with a send of tag 5 for rank 0"
    ) in text
    assert "ranks 0 to 2: send(" in text
    assert "issued before a rank waits for the other" in text


def test_receives_that_nobody_sends_to_are_named() -> None:
    found = module(f"%f = tessera.collective.recv %x : {T} {{shift=1}}", "%y = tessera.await %f", RETURN)
    with pytest.raises(Failure, match="rank 0 waits with a recv of tag 0 for rank 1"):
        run_program(found, found.functions["f"], inputs())


def test_a_rank_that_is_its_own_peer_is_named() -> None:
    found = module(f"%f = tessera.collective.send %x : {T} {{peer=2}}", "%y = tessera.await %f", RETURN)
    with pytest.raises(Rejection, match="rank 2 is its own peer"):
        execute_on_mesh(found, "f", inputs())


def test_the_order_in_which_ranks_go_on_changes_nothing() -> None:
    legal = module(SEND, RECV, "%s = tessera.await %f", "%y = tessera.await %g", RETURN, ranks=5)
    crossed = module(SEND, "%s = tessera.await %f", RECV, "%y = tessera.await %g", RETURN, ranks=5)
    said = set()
    for seed in range(20):
        random = Random(seed)
        results = execute_on_mesh(legal, "f", inputs(5), choice=random.choice)
        assert [each[0].values[0] for each in results] == [40, 0, 10, 20, 30]
        with pytest.raises(Rejection) as rejection:
            execute_on_mesh(crossed, "f", inputs(5), choice=random.choice)
        said.add(str(rejection.value))
    assert len(said) == 1
