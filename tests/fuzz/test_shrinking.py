"""Findings are shrunk in few attempts, and what is left still shows the problem."""

from __future__ import annotations

from tessera_conformance.fuzz.run import pruned, shorter, simpler


def test_only_what_is_needed_stays() -> None:
    needed = {3, 17, 18, 91}
    assert shorter(range(100), lambda rest: needed <= set(rest), 2000) == sorted(needed)


def test_everything_goes_where_nothing_is_needed() -> None:
    assert shorter("abcdef", lambda rest: True, 100) == []


def test_what_cannot_be_shortened_stays() -> None:
    assert shorter([1, 2, 3], lambda rest: False, 100) == [1, 2, 3]
    assert shorter([], lambda rest: True, 100) == []


def test_attempts_are_bounded() -> None:
    asked = []
    shorter(range(1000), lambda rest: bool(asked.append(rest)), 50)
    assert len(asked) == 50
    asked.clear()
    simpler([9] * 1000, lambda rest: bool(asked.append(rest)), 50)
    assert len(asked) == 50


def test_numbers_become_small() -> None:
    assert simpler([9, 8, 0, 7], lambda numbers: numbers[1] >= 4, 100) == [0, 4, 0, 0]
    assert simpler([5, 5], lambda numbers: sum(numbers) == 10, 100) == [5, 5]


def test_parts_are_left_out_or_made_simple() -> None:
    """Parts are stretches between equal numbers; what is needed is a 7 somewhere, and a number before it."""

    def parts_of(numbers: list[int]) -> list[tuple[int, int]]:
        places = {number: [p for p, each in enumerate(numbers) if each == number] for number in set(numbers)}
        return [(found[0], found[-1] + 1) for found in places.values() if len(found) > 1]

    def keeps(numbers: list[int]) -> bool:
        return 7 in numbers and numbers.index(7) > 0

    assert pruned([1, 2, 9, 9, 2, 1, 7, 3, 3], parts_of, keeps, 100) == [0, 7]
    asked: list[list[int]] = []
    pruned([1, 2, 9, 9, 2, 1, 7, 3, 3], parts_of, lambda numbers: bool(asked.append(numbers)), 3)
    assert len(asked) == 3
