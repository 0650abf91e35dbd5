"""Implementations that execute an if, a for or a while wrongly (language spec, sections 1, 2 and 2.3)."""

from dataclasses import replace
from itertools import islice

from tessera_conformance.strength import replaced
from tessera_reference.adapter import make
from tessera_reference.graph.control import For, If, While
from tessera_reference.language import syntax
from tessera_reference.numerics.array import Array

from .changes import after, around, instead, wrapped
from .language_semantics import shown
from .language_syntax import refuses, rewrites

FEW_NAMES, FEW_TURNS = 4, 1000


def runs(clause, name, description, owner, steps):
    """Return a violation with another execution of a control construct."""
    return replaced(clause, description, make, (owner, "steps", steps), name=name)


def both_branches(self, condition, env):
    then = yield from env.region(0, ())
    otherwise = yield from env.region(1, ())
    return then if condition.values else otherwise


def in_the_shorter(self, condition, env):
    taken = yield from env.region(0 if condition.values else 1, ())
    if not any("?" in str(type_) for type_ in self.returns):
        return taken
    other = yield from env.region(1 if condition.values else 0, ())
    return tuple(
        Array(row.dtype, row.values[: len(beside.values)]) if row.values.ndim else row
        for row, beside in zip(taken, other, strict=True)
    )


def exchanged(results, type_of):
    """Return three results or more with the last two exchanged, if they are of one type."""
    if len(results) < 3 or type_of(results[-1]) != type_of(results[-2]):
        return tuple(results)
    return *results[:-2], results[-1], results[-2]


def last_two_exchanged(usual, self, condition, env):
    return exchanged((yield from usual(self, condition, env)), lambda result: (result.dtype, result.shape))


def counted(start, index):
    """Return the loop variable at one turn."""
    return Array(start.dtype, start.values.dtype.type(index))


def numbers(start, stop, step):
    return range(int(start.values), int(stop.values), int(step.values))


def counting(change):
    """Return steps of a for with another start, stop and step."""
    return around(lambda usual, self, *operands, env: usual(self, *change(*operands[:3]), *operands[3:], env=env))


def short_of_the_largest(start, stop, step):
    last = (1 << 31) - 1 - int(step.values)
    near = int(step.values) > 1 and int(stop.values) > last
    return start, counted(stop, last) if near else stop, step


def looping(variable=counted, kept=lambda before, after: after, most=None):
    """Return steps of a for with another variable in a turn, other values kept behind it, or a limit of turns."""

    def steps(self, start, stop, step, *carried, env):
        for index in islice(numbers(start, stop, step), most):
            carried = kept(carried, (yield from env.region(0, (variable(start, index), *carried))))
        return carried

    return steps


def no_turn_by_zero(usual, self, start, stop, step, *carried, env):
    return (yield from usual(self, start, stop, step, *carried, env=env)) if step.values else carried


def first_alone(before, after):
    return *after[:1], *before[1:]


def without_loops_in_whiles(usual, scope, body, hidden):
    own = [inner for inner in body.statements if hidden or not isinstance(inner, syntax.For | syntax.While)]
    return usual(scope, replace(body, statements=tuple(own)), hidden)


def while_of_few_turns(self, *carried, env):
    for _ in range(FEW_TURNS):
        (holds,) = yield from env.region(0, carried)
        if not holds.values:
            break
        carried = yield from env.region(1, carried)
    return carried


def as_before(usual, self, *carried, env):
    return first_alone(carried, (yield from usual(self, *carried, env=env)))


VIOLATIONS = [
    shown("LANG-01-06", "nothing_leaves", "shows no results of operations with regions",
        lambda operation: operation | ({"results": [], "result_types": []} if operation["regions"] else {})),
    runs("LANG-02-08", "shorter_row", "keeps of a row what fits the row of the other branch", If, in_the_shorter),
    runs("LANG-02-08", "always_then", "takes the first block of an if, whatever the condition", If,
        lambda self, condition, env: env.region(0, ())),
    runs("LANG-02-08", "both_branches", "executes both blocks of an if", If, both_branches),
    runs("LANG-02.3-23", "if_exchanged", "exchanges the last two of several names that an if rebinds", If,
        around(last_two_exchanged)),
    refuses("LANG-02.3-23", "else_wanted", "wants an else with every if",
        r"\bif \((?:[^()]|\([^()]*\))*\) \{[^{}]*\}(?! else)"),
    rewrites("LANG-02.3-23", "dangling_then", "takes the word then before a block", r"(\bif \(\w+\)) then \{", r"\1 {"),
    runs("LANG-02-10", "upwards", "counts up by a negative step", For,
        counting(lambda start, stop, step: (start, stop, counted(step, abs(int(step.values)))))),
    runs("LANG-02-10", "at_least_once", "runs the body of an empty for once", For, counting(lambda start, stop, step:
        (start, stop if numbers(start, stop, step) else counted(stop, int(start.values) + 1), step))),
    runs("LANG-02-10", "one_value", "carries only the first of several values from turn to turn", For,
        looping(kept=first_alone)),
    runs("LANG-02.3-24", "stuck", "leaves the variable of a for at its start", For,
        looping(variable=lambda start, index: start)),
    runs("LANG-02-10", "for_few", "runs a for a thousand turns at most", For, looping(most=FEW_TURNS)),
    instead("LANG-02.3-24", "few_names", "carries four names through a loop", "language.statements._carried",
        after(lambda names: names[:FEW_NAMES])),
    runs("LANG-02.3-27", "short_of_the_largest", "ends before a step passes the largest number", For,
        counting(short_of_the_largest)),
    runs("LANG-02.3-27", "zero_step", "takes a step of zero for an empty range", For, around(no_turn_by_zero)),
    rewrites("LANG-02.3-26", "first_of_two", "ignores the second of two names in a for", r"(\bfor \(\w+), ?\w+ in",
        r"\1 in"),
    refuses("LANG-02.3-26", "one_iterator", "refuses two names in a for as syntax", r"\bfor \(\w+, ?\w+ in"),
    wrapped("LANG-02-11", "loops_in_whiles", "does not carry what a loop in a while assigns",
        "language.statements._carried", without_loops_in_whiles),
    runs("LANG-02-11", "while_few", "runs a while a thousand turns at most", While, while_of_few_turns),
    runs("LANG-02-11", "as_before", "hands back only the first of several values of a while", While, around(as_before)),
    refuses("LANG-02.3-25", "comparison_wanted", "wants a comparison as condition of a while",
        r"\bwhile \([^<>=!]*\) \{"),
    refuses("LANG-02.3-22", "no_while", "has if and for only", r"\bwhile \("),
]  # fmt: skip
