"""Orders in which implementations add up many terms, by name, each with the words that a diagnosis says.

An order is a function of the terms and an `Adder`. The names are those of the violators of reductions and products
where they mean the same. Language specification, sections 10 and 15; reference arithmetic, "Orders of reduction".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol, TypeAlias

Terms: TypeAlias = Sequence[Any]


class Adder(Protocol):
    """The arithmetic that an order is carried out with."""

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two terms, rounded."""

    def join(self, terms: Terms) -> Any:
        """The exact sum of several terms, rounded once."""

    def align(self, terms: Terms, bits: int) -> Any:
        """The sum of terms cut off at so many bits below the largest exponent, rounded toward zero."""

    def subtract(self, x: Any, y: Any) -> Any:
        """The difference of two terms, rounded."""

    def size(self, x: Any) -> Any:
        """A key that sorts terms by magnitude."""


Run: TypeAlias = Callable[[Terms, Adder], Any]


@dataclass(frozen=True)
class Order:
    """An order of addition: the sum in words, and how it is carried out over at least one term."""

    words: str
    run: Run


def fold(terms: Terms, adder: Adder) -> Any:
    """((x0 + x1) + x2) + ..."""
    return reduce(adder.add, terms)


def backwards(terms: Terms, adder: Adder) -> Any:
    """From the last term to the first."""
    return fold(terms[::-1], adder)


def ring(terms: Terms, adder: Adder) -> Any:
    """A fold that begins at the second term and ends with the first."""
    return fold([*terms[1:], *terms[:1]], adder)


def pairwise(terms: Terms, adder: Adder) -> Any:
    """Neighbours are added, an odd tail is carried up, repeatedly."""
    row = list(terms)
    while len(row) > 1:
        pairs = [adder.add(x, y) for x, y in zip(row[::2], row[1::2], strict=False)]
        row = pairs + row[len(row) & ~1 :]
    return row[0]


def tail_first(terms: Terms, adder: Adder) -> Any:
    """Neighbours are added from the end, so that an odd term stays at the front."""
    row = list(terms)
    while len(row) > 1:
        odd = len(row) % 2
        row = row[:odd] + [adder.add(x, y) for x, y in zip(row[odd::2], row[odd + 1 :: 2], strict=True)]
    return row[0]


def without_tail(terms: Terms, adder: Adder) -> Any:
    """Neighbours are added, repeatedly, and an odd tail is left out each time."""
    row = list(terms)
    while len(row) > 1:
        row = [adder.add(x, y) for x, y in zip(row[::2], row[1::2], strict=False)]
    return row[0]


def strided_halves(terms: Terms, adder: Adder) -> Any:
    """The first half against the second, repeatedly; an odd term waits."""
    row = list(terms)
    while len(row) > 1:
        half = (len(row) + 1) // 2
        rest = len(row) - half
        row = [adder.add(x, y) for x, y in zip(row[:rest], row[half:], strict=True)] + row[rest:half]
    return row[0]


def split_in_the_middle(terms: Terms, adder: Adder) -> Any:
    """Each half is summed for itself, by recursion."""
    if len(terms) < 2:
        return terms[0]
    middle = len(terms) // 2
    return adder.add(split_in_the_middle(terms[:middle], adder), split_in_the_middle(terms[middle:], adder))


def two_halves(terms: Terms, adder: Adder) -> Any:
    """A fold of the first half and a fold of the second."""
    if len(terms) < 2:
        return terms[0]
    middle = len(terms) // 2
    return adder.add(fold(terms[:middle], adder), fold(terms[middle:], adder))


def even_and_odd(terms: Terms, adder: Adder) -> Any:
    """The terms of even index in turn, then those of odd index."""
    return fold([*terms[::2], *terms[1::2]], adder)


def power_and_rest(terms: Terms, adder: Adder) -> Any:
    """The largest power of two of terms by neighbours; the rest, split in the middle, is added last."""
    power = 1 << (len(terms).bit_length() - 1)
    whole = pairwise(terms[:power], adder)
    return whole if power == len(terms) else adder.add(whole, split_in_the_middle(terms[power:], adder))


def ascending(terms: Terms, adder: Adder) -> Any:
    """A fold by ascending magnitude."""
    return fold(sorted(terms, key=adder.size), adder)


def at_once(terms: Terms, adder: Adder) -> Any:
    """The exact sum, rounded once."""
    return adder.join(terms)


def kahan(terms: Terms, adder: Adder) -> Any:
    """A left fold that carries the part that each addition loses."""
    total, lost = terms[0], None
    for term in terms[1:]:
        corrected = term if lost is None else adder.subtract(term, lost)
        following = adder.add(total, corrected)
        gained = adder.subtract(following, total)
        lost = adder.subtract(gained, corrected) if adder.size(following) < math.inf else None
        total = following
    return total


def numpy(terms: Terms, adder: Adder) -> Any:
    """As numpy adds along contiguous memory: eight lanes in blocks of up to 128 terms, larger rows split."""
    count = len(terms)
    if count < 8:
        return fold(terms, adder)
    if count > 128:
        middle = count // 2 - count // 2 % 8
        return adder.add(numpy(terms[:middle], adder), numpy(terms[middle:], adder))
    whole = count - count % 8
    lanes = [fold(terms[lane:whole:8], adder) for lane in range(8)]
    return fold([pairwise(lanes, adder), *terms[whole:]], adder)


def blocks(size: int, across: Run = fold) -> Run:
    """A fold of each block of consecutive terms; the blocks are then added in the order `across`."""

    def run(terms: Terms, adder: Adder) -> Any:
        return across([fold(terms[at : at + size], adder) for at in range(0, len(terms), size)], adder)

    return run


def lanes(count: int, across: Run = pairwise) -> Run:
    """Term i goes to partial result i mod `count`; the partial results are then added in the order `across`."""

    def run(terms: Terms, adder: Adder) -> Any:
        return across([fold(terms[lane::count], adder) for lane in range(min(count, len(terms)))], adder)

    return run


def fused(size: int) -> Run:
    """A running total to which so many terms are added at once, exactly, as tensor cores do."""

    def run(terms: Terms, adder: Adder) -> Any:
        total = adder.join(terms[:size])
        for at in range(size, len(terms), size):
            total = adder.join([total, *terms[at : at + size]])
        return total

    return run


def tensor_core(size: int) -> Run:
    """A running total, from the start value, to which so many products are added at once, aligned and truncated."""

    def run(terms: Terms, adder: Adder) -> Any:
        total = terms[0]
        for at in range(1, len(terms), size):
            total = adder.align([total, *terms[at : at + size]], ALIGNED_BITS)
        return total

    return run


ALIGNED_BITS = 24
"""Bits below the largest exponent that the adder of a tensor core keeps."""
SIZES = (4, 8, 16, 32, 64)

ORDERS: Mapping[str, Order] = {
    "fold": Order("a left fold of the sum", fold),
    "pairwise": Order("the pairwise tree of the sum", pairwise),
    "backwards": Order("a fold of the sum from the last term to the first", backwards),
    "two_halves": Order("a fold of each half of the terms", two_halves),
    "split_in_the_middle": Order("a sum that splits its terms in the middle", split_in_the_middle),
    "strided_halves": Order("a sum of the first half and the second, repeatedly", strided_halves),
    "even_and_odd": Order("a fold of the even terms and then of the odd ones", even_and_odd),
    "ring": Order("a fold of the sum that begins at the second term", ring),
    "tail_first": Order("a sum of neighbours from the end", tail_first),
    "without_tail": Order("a sum of neighbours, an odd one left out each time", without_tail),
    "power_and_rest": Order("a tree over the largest power of two and then the rest", power_and_rest),
    "numpy": Order("a sum as numpy adds, by eight lanes in blocks of 128", numpy),
    "ascending": Order("a fold of the sum by ascending magnitude", ascending),
    "kahan": Order("Kahan's compensated sum", kahan),
    "at_once": Order("an exact sum that is rounded once", at_once),
    **{f"blocks_of_{size}": Order(f"a sum by blocks of {size} terms", blocks(size)) for size in SIZES},
    **{
        f"paired_blocks_of_{size}": Order(f"a pairwise sum of blocks of {size} terms", blocks(size, pairwise))
        for size in SIZES
    },
    "two_lanes": Order("a sum by 2 lanes", lanes(2)),
    "four_lanes": Order("a sum by 4 lanes, added pairwise", lanes(4)),
    **{f"{size}_lanes": Order(f"a sum by {size} lanes, added pairwise", lanes(size)) for size in SIZES if size > 4},
    **{
        f"{size}_lanes_{name}": Order(f"a sum by {size} lanes, added {words}", lanes(size, across))
        for size in SIZES
        for name, words, across in (("in_turn", "in turn", fold), ("halved", "half to half", strided_halves))
    },
    **{f"fused_{size}": Order(f"a fold of {size} terms at once, exactly", fused(size)) for size in SIZES[:3]},
    **{
        f"tensor_core_{size}": Order(f"a fold of {size} exact products at once, truncated", tensor_core(size))
        for size in SIZES[:3]
    },
}
"""The orders that the catalogue knows, simplest first: of several that fit, the first is named."""
