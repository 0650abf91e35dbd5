"""Generated programs: accepted where they are legal, refused where they are not, answered whatever they are.

The programs follow from numbers alone, so that a case is the same everywhere. `tessera-conformance fuzz` makes as many
as wanted of the same ones, and smaller forms of those that were answered wrongly.
"""

from dataclasses import replace

import pytest

from tessera_conformance.fuzz.trials import Tally, chooser_of, judge, make_trial
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.protocol import Unsupported

SEED = 4
FEATURES = (
    "activations",
    "annotations",
    "broadcasting-ops",
    "casts",
    "elementary-functions",
    "extra-dtypes",
    "fused-attention",
    "inverse-fft",
    "matmul-out",
    "mesh-collectives",
    "mesh-execution",
    "normalization",
    "random-ops",
    "reductions",
    "tensor-ops",
    "zero-sizes",
)


def trials(kind, block, count, features=()):
    """The trials of a block: other blocks, kinds and features have other ones."""
    first = 1_000_000 * FEATURES.index(features[0]) + 1_000_000 if features else 0
    return [make_trial(chooser_of(SEED, first + block * count + n), features, [kind]) for n in range(count)]


class Asking:
    """The judge's requests through the areas of the implementation; keeps the first answer without a result."""

    def __init__(self, impl):
        self.impl = impl
        self.unsupported = None

    def __call__(self, method, params):
        """One answer."""
        area, _, name = method.partition(".")
        answer = getattr(getattr(self.impl, area), name)(**params)
        if isinstance(answer, Unsupported) and self.unsupported is None:
            self.unsupported = answer
        return answer


def examine(impl, check, made):
    """No property of the trials is broken, some are answered, and what is legal is executed.

    A program that is not implemented reads as unsupported, not as a wrong answer.
    """
    tally, ask = Tally(), Asking(impl)
    for trial in made:
        problem = judge(ask, trial, tally)
        detail = "" if problem is None else f"{problem.name}: {problem.detail}\n{trial.subject.source}"
        check.true(problem is None, f"{trial.what}: the program is answered as it must be", detail or "answered")
    whole = tally.judged > 0 and (made[0].kind in ("illegal", "mutant") or ask.unsupported is None)
    if not whole and ask.unsupported is not None:
        check.returns(ask.unsupported, "no part of the core is `unsupported`")
    check.true(tally.judged > 0, "some trial is answered", dict(tally.answers))


@clause("LANG-02.3-03", "LANG-02.3-15", "LANG-02.3-21", "LANG-02.3-22", "LANG-02.3-30", "LANG-02.3-31")
@pytest.mark.parametrize("block", range(16))
def test_a_legal_program_is_accepted(impl, check, block):
    """Declarations, statements and expressions of every form, put together at random, well typed.

    Names may hide others, indices be fewer than dimensions, and literals stand where nothing asks for a type
    (AMB-LANG-86, AMB-LANG-180, AMB-LANG-54, AMB-LANG-92).
    """
    for trial in trials("legal", block, 8):
        check.accepts(impl.language.verify(source=trial.subject.source))
        examine(impl, check, [replace(trial, thorough=False)])


@clause("LANG-02-04")
@pytest.mark.parametrize(
    ("name", "block"),
    [pytest.param(name, block, marks=feature(name), id=f"{name}-{block}") for name in FEATURES for block in range(2)],
)
def test_a_legal_program_with_a_feature_is_accepted(impl, check, name, block):
    """Programs of the core and of one feature more (AMB-LANG-86, AMB-LANG-180, AMB-LANG-92)."""
    for trial in trials("legal", block, 6, (name,)):
        check.accepts(impl.language.verify(source=trial.subject.source))
        examine(impl, check, [replace(trial, thorough=False)])


@clause("LANG-04-01", "LANG-02.3-01")
@level("strict", "deterministic")
@pytest.mark.parametrize("block", range(6))
def test_a_legal_program_gives_the_same_again(impl, check, block):
    """Parsed, verified, lowered and executed twice, a program has one meaning and its results one value.

    AMB-LANG-86, AMB-LANG-180, AMB-LANG-92.
    """
    for trial in trials("legal", 100 + block, 8):
        check.accepts(impl.language.verify(source=trial.subject.source))
        examine(impl, check, [replace(trial, thorough=True)])


@clause("LANG-14.1-05", "LANG-14.1-06", "LANG-02.1-07", "LANG-02.3-77", "LANG-02.3-32", "LANG-04-01")
@level("strict", "deterministic")
@pytest.mark.parametrize("block", range(12))
def test_the_answer_does_not_depend_on_the_spelling(impl, check, block):
    """Names, spaces, comments, parentheses, the order of functions and the place of attributes change no answer.

    AMB-LANG-86, AMB-LANG-180, AMB-LANG-92, AMB-LANG-97.
    """
    for trial in trials("variant", block, 8):
        check.accepts(impl.language.verify(source=trial.subject.source))
        examine(impl, check, [trial])


@clause("LANG-03.1-01", "LANG-03.1-05", "LANG-03.2-01", "LANG-11-01", "LANG-11-03", "LANG-02.3-16")
@pytest.mark.parametrize("block", range(12))
def test_a_program_with_one_mistake_is_refused(impl, check, block):
    """A legal program in which one statement, declaration or token is wrong, with a fitting category.

    Alternatives accept some: AMB-LANG-74, AMB-LANG-92, AMB-LANG-152, AMB-LANG-153.
    """
    examine(impl, check, trials("illegal", block, 8))


@clause("LANG-12-01", "LANG-12-05")
@pytest.mark.parametrize("block", range(12))
def test_any_text_is_answered(impl, check, block):
    """Programs cut, mixed and mutated: an answer in time, and diagnostics about places inside the text."""
    examine(impl, check, trials("mutant", block, 16))
