"""Writes, launches and reads in any order, against a table of bytes (D5 to D7; AMB-HIO-47, -48, -57)."""

from __future__ import annotations

from tessera_conformance.chapters.abi.host_io.kit.elements import INTEGERS, filled
from tessera_conformance.chapters.abi.host_io.kit.exchange import pair_of
from tessera_conformance.chapters.abi.host_io.kit.launches import Part, has_built_in, of_one_sip, parts, run
from tessera_conformance.chapters.abi.host_io.kit.memory import host_of
from tessera_conformance.chapters.abi.host_io.kit.messages import scalar
from tessera_conformance.fuzz.drawn import judge_each
from tessera_conformance.fuzz.tree import seeded
from tessera_conformance.marks import clause, feature

SIZE = 512
"""Bytes of each PE that are looked at."""
PES = 3
KINDS = ["zero", *INTEGERS]
STEPS = ("write_and_read", "fill_by_a_kernel", "copy_by_a_kernel")


def steps(choose):
    """Up to twenty steps, each with the number that it hangs on: to draw each of its arguments would take much longer.

    No bound is over 100: among larger numbers hypothesis draws those that stand in the modules it finds loaded, which
    are others in another run.
    """
    return [(choose.pick(STEPS), 100 * choose.below(100) + choose.below(100)) for _ in range(choose.between(1, 20))]


class Requests:
    """Carries out steps; `model` is what each PE's memory has to hold."""

    def __init__(self, host):
        self.host = host
        self.places = of_one_sip(host, PES)
        self.model = [host.painted(place, host.base, SIZE) for place in self.places]

    def write_and_read(self, seed):
        """Writes, some of which are refused, with a read after each; sent together."""
        choose = seeded(str(seed))
        sent, outcomes = [], []
        for _ in range(choose.between(1, 6)):
            number, kind = choose.below(len(self.places)), choose.pick(KINDS)
            place, model, size = self.places[number], self.model[number], INTEGERS.get(kind, 1)
            count = choose.below(10) * size + (1 if choose.chance(6) else 0)
            offset, value = choose.below(SIZE - count), choose.below(256**size + 256**size // 8)
            sound = count > 0 and count % size == 0 and (kind == "zero" or value < 256**size)
            if sound:
                model[offset : offset + count] = filled(kind, value, count)
            sent.append(self.host.fill(place, self.host.base + offset, count, kind, value))
            outcomes.append((sound, None))
            sent.append(self.host.read_back(place, self.host.base + offset, count + 1))
            outcomes.append((True, bytes(model[offset : offset + count + 1])))
        self.judge(sent, outcomes, choose.pick([None, 0, 1, 2]))

    def judge(self, sent, outcomes, seed):
        """Completions are as expected, and where the endpoint brings bytes, they are those of the model."""
        answered = self.host.send(*sent, seed=seed)
        for message, completion, (sound, data) in zip(sent, answered.completions, outcomes, strict=True):
            self.host.check.equal(completion["ok"], sound, f"success of {message}")
            brought = answered.sinks.get(pair_of(message))
            if data is not None and brought is not None and len(brought) <= len(data):
                self.host.check.equal(brought.hex(), data[: len(brought)].hex(), f"what {message} brought")

    def fill_by_a_kernel(self, seed):
        """A launch on all PEs, whose shards are listed in any order."""
        choose = seeded(str(seed))
        size, number = 4 * choose.between(1, 12), choose.below(2**32) - 2**31
        first = choose.below(SIZE - size)
        listed = choose.shuffled(list(enumerate(self.places)))
        shards = [Part(place, self.host.base + first, size, 64 * turn) for turn, place in listed]
        if has_built_in(self.host, "fill"):
            run(self.host, "fill", parts(*shards), scalar("i32", number))
            for model in self.model:
                model[first : first + size] = filled("fill_u32", number % 2**32, size)

    def copy_by_a_kernel(self, seed):
        """A launch on one PE, from one address to another that is apart."""
        choose = seeded(str(seed))
        number, count = choose.below(len(self.places)), choose.between(1, 60)
        source, onto = choose.below(SIZE // 2 - count), SIZE // 2 + choose.below(SIZE // 2 - count)
        if choose.chance(2):
            source, onto = onto, source
        moved = [parts(Part(self.places[number], self.host.base + offset, count)) for offset in (source, onto)]
        if has_built_in(self.host, "copy"):
            run(self.host, "copy", *moved)
            model = self.model[number]
            model[onto : onto + count] = model[source : source + count]

    def judge_memory(self):
        """Every byte of every PE is that of the model."""
        for place, model in zip(self.places, self.model, strict=True):
            self.host.holds(place, self.host.base, bytes(model), f"the memory of PE {dict(place)} in the end")


@clause(
    "HIO-D5-01", "HIO-D7-01", "HIO-D6-13", "HIO-D5-13", "HIO-D5-14", "HIO-D5-15", "HIO-D5-16", "HIO-D7-37", "HIO-D7-46"
)
@feature("device-memory-probe", "delivery-order")
def test_any_sequence_of_requests_leaves_the_memory_of_a_model(impl, check):
    """Sixty sequences of up to twenty steps: writes, sound and not, with reads; launches; any order of completion.

    Which writes are sound, and what a read after them sees, hangs on AMB-HIO-05, AMB-HIO-06, AMB-HIO-20 and AMB-HIO-48.
    """
    judge_each(check, steps, judged_by_a_model(impl, check), examples=60, number=7)


@clause("HIO-D5-01", "HIO-D7-01", "HIO-D5-13", "HIO-D5-14", "HIO-D5-15", "HIO-D5-16", "HIO-D7-37", "HIO-D7-46")
@feature("device-memory-probe", "delivery-order")
def test_a_sequence_that_the_seed_of_the_run_draws_leaves_the_memory_of_a_model(impl, check):
    """Eight more, which are others under another seed (AMB-HIO-05, AMB-HIO-06, AMB-HIO-20, AMB-HIO-48)."""
    judge_each(check, steps, judged_by_a_model(impl, check), examples=8, number=10_000 + impl.seed)


def judged_by_a_model(impl, check):
    """A function that carries out a sequence of steps and compares all memory."""
    host = host_of(impl, check)

    def judge(sequence):
        requests = Requests(host)
        for step, seed in sequence:
            getattr(requests, step)(seed)
        requests.judge_memory()

    return judge
