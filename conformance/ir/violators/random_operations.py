"""Random operations that count as pure, share streams, or draw other numbers (language spec, 4; AMB-LANG-171)."""

from fractions import Fraction

from tessera_conformance.strength import Around, replaced
from tessera_reference.adapter import make, messages
from tessera_reference.graph.composites import Dropout, DropoutMask, Normal, Uniform
from tessera_reference.graph.term import Term, widened

from .changes import breaks, changed, wrapped

DRAWS = (Uniform, Normal, Dropout)


def cleaned(clause, name, description, clean):
    """Return a violation whose IR lacks some operations."""

    def function(usual, given):
        kept = clean(list(given.body.walk()), set(given.body.results))
        return usual(given) | {"operations": [messages._operation(operation) for operation in kept]}

    return wrapped(clause, name, description, "adapter.language.function_message", function)


def without_unused(instructions, returned):
    taken = returned.union(*(instruction.operands for instruction in instructions))
    return [kept for kept in instructions if not isinstance(kept.operation, DRAWS) or taken & {*kept.results}]


def without_twins(*operations):
    def clean(instructions, returned):
        known, kept = set(), []
        for instruction in instructions:
            twin = (instruction.operation, instruction.operands)
            if type(instruction.operation) not in operations or twin not in known:
                kept.append(instruction)
            known.add(twin)
        return kept

    return clean


@breaks("LANG-04-06", "evaluates a condition once more", "graph.control.While.steps")
def conditions_once_more(usual, self, *carried, env):
    found = yield from usual(self, *carried, env=env)
    yield from env.region(0, found)
    return found


@breaks("LANG-04-06", "numbers the draws of a call anew", "graph.interpreter.Within.call")
def calls_anew(usual, self, function, arguments):
    self.interpreter.stream = 0
    return usual(self, function, arguments)


@breaks("LANG-04-06", "counts draws that are told their stream", "graph.composites.stream_of")
def told_counts_too(usual, stream, env):
    following = env.next_stream()
    return following if stream is None else stream


def first_part(usual):
    return staticmethod(lambda seed, stream, shape, dtype, offset: usual(seed, stream, shape, dtype, 0))


EFFECTS = [
    wrapped("LANG-04-06", "no_draw_of_rate_0", "draws nothing where nothing is dropped",
        "graph.composites.Dropout.decompose",
        lambda usual, self, build, x: x if self.rate == 0 else usual(self, build, x)),
    cleaned("LANG-04-06", "unused_draws_left_out", "leaves out draws that nobody uses", without_unused),
    cleaned("LANG-04-06", "equal_draws_merged", "takes equal draws for one", without_twins(*DRAWS)),
    replaced("LANG-04-06", "says that draws have no effect", make, ("graph.composites.Draw.effects", frozenset()),
        ("graph.composites.Dropout.effects", frozenset()), name="pure_draws"),
    changed("RT-11-03", "every_part_is_the_first", "begins every part with element 0",
        (Uniform, "draw", Around(first_part)), (Normal, "draw", Around(first_part)), only=["uniform", "normal"]),
]  # fmt: skip


def dropped(name, description, compose):
    """Return a violation with another composition of dropout from x in the accumulator type and the mask."""

    def decompose(self, build, x):
        source = {"seed": self.seed, "stream": self.stream, "offset": self.offset}
        keeps = Term(build(DropoutMask, shape=self.x.shape, rate=self.rate, **source), build)
        return compose(self, widened(x, build), keeps).cast_to(self.x.dtype).value

    return changed("LANG-02-04", name, description, ("graph.composites.Dropout.decompose", decompose), only=["dropout"])


def share(self):
    return 1 - Fraction(self.rate)


DROPOUT = [
    dropped("times_zero", "multiplies what is dropped by zero",
        lambda self, x, keeps: x / share(self) * keeps.cast(dtype=x.dtype)),
    dropped("by_reciprocal", "multiplies by 1 / (1 - rate)",
        lambda self, x, keeps: (x * (1 / share(self))).where(keeps)),
    replaced("LANG-05.5-01", "differentiates dropout with a mask of its own", make,
        ("graph.composites.Dropout.transparent", False), ("graph.composites.Dropout.adjoint", lambda self, at, build:
            (build(Dropout, at.dy, rate=self.rate, seed=self.seed, stream=self.stream),)), name="another_mask"),
]  # fmt: skip
