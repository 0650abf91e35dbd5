"""The credits of links, asked of a limiter alone (collectives specification, 4.2; AMB-COLL-17)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count
from random import Random
from typing import Any

import pytest

from tessera_conformance.marks import clause, feature

NVLINK, NIC = ("nvlink-0", "nvlink-1"), ("nic-0", "nic-1")
KINDS = [
    pytest.param(NVLINK, marks=clause("COLL-04.2-01"), id="nvlink"),
    pytest.param(NIC, marks=clause("COLL-04.2-02"), id="nic"),
]


class Limiter:
    """A limiter of the implementation, and the chunks that the case has in flight."""

    def __init__(self, impl: Any, check: Any, credits: dict[str, int]) -> None:
        self.calls, self.check, self.credits = impl.collectives, check, credits
        self.limiter = check.returns(self.calls.limiter(credits=credits))["limiter"]
        self.in_flight: dict[str, tuple[str, ...]] = {}
        self._names = (f"chunk-{number}" for number in count())

    def acquire(self, *ways: Sequence[str]) -> tuple[str, ...] | None:
        """The way of the chunk that is issued of those that are ready, each with the links on its way."""
        ready = {next(self._names): tuple(links) for links in ways}
        chunks = [{"id": name, "links": list(links)} for name, links in ready.items()]
        chosen = self.check.returns(self.calls.acquire(limiter=self.limiter, ready=chunks))["chunk"]
        if chosen is None:
            return None
        self.check.true(chosen in ready, "the chunk that is issued is one of the ready ones", chosen)
        self.in_flight[chosen] = ready[chosen]
        return ready[chosen]

    def release(self, chunk: str) -> None:
        """A chunk arrives."""
        self.check.returns(self.calls.release(limiter=self.limiter, chunk=chunk))
        del self.in_flight[chunk]

    def left(self) -> dict[str, int]:
        """The credits of each link that no chunk in flight has."""
        taken = Counter(link for links in self.in_flight.values() for link in links)
        return {link: credits - taken[link] for link, credits in self.credits.items()}


@feature("credit-limiter")
@clause("COLL-04.2-03")
@pytest.mark.parametrize("links", KINDS)
@pytest.mark.parametrize("credits", [1, 2, 5])
def test_each_link_has_as_many_chunks_in_flight_as_it_has_credits(impl, check, credits, links):
    """The next chunk is issued only once one has arrived; the other link has credits of its own."""
    first, second = links
    limiter = Limiter(impl, check, {first: credits, second: credits + 1})
    for number in range(credits):
        check.equal(limiter.acquire([first]), (first,), f"the link of chunk {number + 1} of {credits}")
    check.equal(limiter.acquire([first]), None, f"what is issued on {first} beyond {credits} credits")
    for number in range(credits + 1):
        check.equal(limiter.acquire([second]), (second,), f"the link of chunk {number + 1} of {credits + 1}")
    check.equal(limiter.acquire([second]), None, f"what is issued on {second} beyond {credits + 1} credits")
    for chunk in [chunk for chunk, way in limiter.in_flight.items() if way == (first,)]:
        limiter.release(chunk)
        check.equal(limiter.acquire([first]), (first,), "the link of the next chunk, once one has arrived")
        check.equal(limiter.acquire([first]), None, "what is issued beyond the credit that came back")


@feature("credit-limiter")
@clause("COLL-04.2-04")
@pytest.mark.parametrize("place", [0, 1, 4])
def test_another_ready_chunk_is_issued_where_credits_are_short(impl, check, place):
    """A ready chunk is issued from any place in the queue of those that wait for the link."""
    limiter = Limiter(impl, check, {"a": 1, "b": 1, "c": 1})
    check.equal(limiter.acquire(["a"]), ("a",), "the link of the first chunk")
    waiting = [["a"], ["a", "b"], ["c", "a"], ["a"]]
    issued = limiter.acquire(*waiting[:place], ["c", "b"], *waiting[place:])
    check.given("a" not in (issued or ()), "nothing is issued on a link without a credit", issued)
    check.equal(issued, ("c", "b"), "the links of the chunk that has its credits")


@feature("credit-limiter")
@clause("COLL-04.2-03")
def test_a_chunk_takes_a_credit_of_every_link_on_its_way_or_none(impl, check):
    """One that is not issued leaves the credits of its other links; one that arrives returns all of its own."""
    limiter = Limiter(impl, check, {"a": 2, "b": 1, "c": 1})
    check.equal(limiter.acquire(["a", "b"]), ("a", "b"), "the links of the first chunk")
    for _ in range(3):
        check.equal(limiter.acquire(["a", "b"], ["c", "b"]), None, "what is issued without a credit of b")
    check.equal(limiter.acquire(["c", "a"]), ("c", "a"), "the links of a chunk, after others were not issued")
    check.equal(limiter.acquire(["a"]), None, "what is issued once both credits of a are taken")
    limiter.release(next(chunk for chunk, way in limiter.in_flight.items() if "b" in way))
    check.equal(limiter.acquire(["a", "b"]), ("a", "b"), "the links of the next chunk, once the first has arrived")


@feature("credit-limiter")
@clause("COLL-04.2-03")
def test_a_chunk_returns_its_credits_once(impl, check):
    """A second release, or that of a chunk never issued, adds no credit, whatever its answer."""
    limiter = Limiter(impl, check, {"a": 2})
    check.equal(limiter.acquire(["a"]), ("a",), "the link of the first chunk")
    (first,) = limiter.in_flight
    limiter.release(first)
    for chunk in (first, "never-issued"):
        limiter.calls.release(limiter=limiter.limiter, chunk=chunk)
    for _ in range(2):
        check.equal(limiter.acquire(["a"]), ("a",), "the link of a chunk")
    check.equal(limiter.acquire(["a"]), None, "what is issued beyond two credits")


@feature("credit-limiter")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "judged",
    [
        pytest.param("limit", marks=clause("COLL-04.2-03")),
        pytest.param("progress", marks=clause("COLL-04.2-04")),
    ],
)
def test_chunks_are_issued_while_credits_last(impl, check, judged, seed):
    """In any order of arrivals: never beyond the credits of a link, and always where a ready chunk has its credits."""
    random = Random(seed)
    limiter = Limiter(impl, check, {f"link-{number}": random.randint(1, 3) for number in range(5)})
    for _ in range(120):
        if limiter.in_flight and random.random() < 0.4:
            limiter.release(random.choice(sorted(limiter.in_flight)))
            continue
        left = limiter.left()
        ways = [random.sample(sorted(left), random.randint(1, 3)) for _ in range(random.randint(1, 4))]
        possible = [tuple(way) for way in ways if all(left[link] for link in way)]
        issued = limiter.acquire(*ways)
        within = issued is None or issued in possible
        state = f"of {ways} with credits {left}"
        if judged == "limit":
            check.true(within, f"nothing without its credits is issued {state}", issued)
        else:
            check.given(within, f"nothing without its credits is issued {state}", issued)
            check.equal(issued is None, not possible, f"nothing is issued {state}")
