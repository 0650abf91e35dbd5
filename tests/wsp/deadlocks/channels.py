"""Deadlocks of channels."""

from __future__ import annotations

from tessera_reference.wsp.builder import Program

from .corpus import EMPTY, FULL, channel, deadlock, receives, sends


@deadlock([EMPTY])
def both_receive_first(program: Program) -> None:
    a, b = program.channel("a"), program.channel("b")
    with program.process("p"):
        program.receive(a, "v")
        program.send(b)
    with program.process("q"):
        program.receive(b, "w")
        program.send(a)


@deadlock([EMPTY])
def three_receive_first(program: Program) -> None:
    ring = [program.channel(f"c{place}", capacity=2) for place in range(3)]
    for place in range(3):
        with program.process(f"p{place}"):
            program.receive(ring[place], f"v{place}")
            program.send(ring[(place + 1) % 3])


@deadlock([EMPTY])
def consumers_in_a_ring(program: Program) -> None:
    a, b = program.channel("a"), program.channel("b")
    with program.process("p"), program.consume(a, "v") as v:
        program.send(b, v)
    with program.process("q"), program.consume(b, "w") as w:
        program.send(a, w)


@deadlock([EMPTY])
def receives_from_itself_before_it_sends(program: Program) -> None:
    c = program.channel("c", capacity=5)
    with program.process("p"):
        program.receive(c, "v")
        program.send(c)


@deadlock([FULL], channel("c", 2))
def sends_twice_to_itself(program: Program) -> None:
    c = program.channel("c")
    with program.process("p"):
        sends(program, c, 2)
        receives(program, c, 2)


@deadlock([FULL], channel("c", 2))
def sends_twice_to_itself_with_latency(program: Program) -> None:
    c = program.channel("c", latency=5)
    with program.process("p"):
        sends(program, c, 2)
        receives(program, c, 2)


@deadlock([FULL], channel("c", 7))
def sends_as_many_as_a_symbol_says(program: Program) -> None:
    c, n = program.channel("c", capacity=3), program.symbol("n", default=7)
    with program.process("p"):
        with program.repeat(n):
            program.send(c)
        with program.repeat(n):
            program.receive(c, "v")


@deadlock([FULL], channel("a", 2), channel("b", 2))
def both_send_before_they_receive(program: Program) -> None:
    a, b = program.channel("a"), program.channel("b")
    for name, out, back in (("p", a, b), ("q", b, a)):
        with program.process(name):
            sends(program, out, 2)
            program.receive(back, f"{name}0")
            program.receive(back, f"{name}1")


@deadlock([FULL], channel("c0", 2), channel("c1", 2), channel("c2", 2))
def three_send_before_they_receive(program: Program) -> None:
    ring = [program.channel(f"c{place}") for place in range(3)]
    for place in range(3):
        with program.process(f"p{place}"):
            sends(program, ring[place], 2)
            receives(program, ring[place - 1], 2)


@deadlock([FULL, EMPTY], channel("a", 2))
def full_against_empty(program: Program) -> None:
    a, b = program.channel("a"), program.channel("b")
    with program.process("p"):
        sends(program, a, 2)
        program.send(b)
    with program.process("q"):
        program.receive(b, "v")
        receives(program, a, 2)


@deadlock([FULL, EMPTY], channel("a", 5))
def full_against_empty_by_far(program: Program) -> None:
    a, b = program.channel("a"), program.channel("b")
    with program.process("p"):
        sends(program, a, 5)
        program.send(b)
    with program.process("q"):
        program.receive(b, "v")
        receives(program, a, 5)


@deadlock([FULL], channel("a", 2), channel("b", 2))
def a_round_trip_of_four_tokens(program: Program) -> None:
    """One token in b, one in the hand of q, one in a, and the fourth has no place."""
    a, b = program.channel("a"), program.channel("b")
    with program.process("p"):
        sends(program, a, 4)
        program.close(a)
        with program.consume(b, "v"):
            pass
    with program.process("q"), program.consume(a, "w") as w:
        program.send(b, w)


@deadlock([FULL], channel("c", 1))
def a_rendezvous_with_itself(program: Program) -> None:
    c = program.channel("c", capacity=0)
    with program.process("p"):
        program.send(c)
        program.receive(c, "v")


@deadlock([FULL, EMPTY], channel("a", 1))
def two_rendezvous_in_another_order(program: Program) -> None:
    a, b = program.channel("a", capacity=0), program.channel("b", capacity=0)
    with program.process("p"):
        program.send(a)
        program.send(b)
    with program.process("q"):
        program.receive(b, "v")
        program.receive(a, "w")


@deadlock([FULL], channel("a", 1), channel("b", 1))
def two_rendezvous_across(program: Program) -> None:
    a, b = program.channel("a", capacity=0), program.channel("b", capacity=0)
    for name, out, back in (("p", a, b), ("q", b, a)):
        with program.process(name):
            program.send(out)
            program.receive(back, name)


@deadlock([FULL, EMPTY])
def with_room_it_ends_in_an_error(program: Program) -> None:
    """With a second place in c, p closes d, from which q receives."""
    c, d = program.channel("c"), program.channel("d")
    with program.process("p"):
        sends(program, c, 2)
        program.close(d)
    with program.process("q"):
        program.receive(d, "v")
        receives(program, c, 2)


@deadlock([FULL], channel("c", 2))
def long_after_the_deadlock_it_goes_on(program: Program) -> None:
    c = program.channel("c")
    with program.process("p"):
        sends(program, c, 2)
        with program.repeat(1 << 62):
            program.receive(c, "v")
            program.send(c)
