"""Mutants by rule: places, changes, what is executed, isolation, and `strength --mutants` from end to end."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.cli import main
from tessera_conformance.strength import commands
from tessera_conformance.strength.mutants import (
    Change,
    Mutant,
    _Trace,
    changed,
    changes,
    explained,
    install,
    mutants_of,
    read_equivalents,
    read_killers,
    sample,
    stale,
)
from tessera_conformance.strength.sharing import isolated


def function(text: str) -> ast.FunctionDef:
    """The function of a text."""
    (node,) = ast.parse(textwrap.dedent(text)).body
    assert isinstance(node, ast.FunctionDef)
    return node


def made(text: str) -> set[tuple[str, str, str]]:
    """Rule, before and after of every change of a function with this body."""
    body = textwrap.indent(textwrap.dedent(text), "    ")
    return {(change.rule, change.before, change.after) for change in changes(function(f"def f(a, b):\n{body}"))}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return a < b", {("comparison", "a < b", "a <= b")}),
        ("return a in b", {("comparison", "a in b", "a not in b")}),
        ("return a << b", {("operator", "a << b", "a >> b")}),
        ("return a and b", {("operator", "a and b", "a or b")}),
        ("return not a", {("unary", "not a", "a")}),
        ("return -a", {("unary", "-a", "a")}),
        ("return a[7]", {("off by one", "7", "8")}),
        ("return True", {("constant", "True", "False")}),
        ("return b(a, b)", {("argument order", "b(a, b)", "b(b, a)")}),
        ("return b(*a, b)", set()),
        ("return b(a, a)", set()),
        ("return max(a, b)", set()),
        ("a.clear()", {("statement removed", "a.clear()", "pass")}),
        ("a.size = b", {("statement removed", "a.size = b", "pass")}),
        ("c = a", set()),
        ("return {a: a, b: b}", {("member 0", "a", "b"), ("member 1", "b", "a")}),
        ("return {a: b, b: b}", set()),
        (
            "match a:\n    case str():\n        return b\n    case [c]:\n        return c",
            {("member 1", "case [c]:\n    return c", "case [c]:\n    return b")},
        ),
    ],
)
def test_a_rule_makes_its_change(body: str, expected: set[tuple[str, str, str]]) -> None:
    assert made(body) == expected


def test_a_branch_is_never_taken_or_always() -> None:
    actual = made("if a: return b\nelse: return a")
    assert {rule for rule, _, _ in actual} == {"branch dropped", "else dropped"}
    assert {after.splitlines()[0] for _, _, after in actual} == {"if False:", "if True:"}


@pytest.mark.parametrize(
    "body",
    [
        '"""A docstring."""\nreturn a',
        'raise ValueError(f"{a + 1} is below {b < 2}")',
        "c: dict[int, 2] = a\nreturn c",
        'def inner(c=1):\n    """Of 2."""\n    return c\nreturn inner',
    ],
)
def test_what_no_case_can_judge_is_left_alone(body: str) -> None:
    assert made(body) == set()


def test_a_change_is_made_in_its_place_only() -> None:
    node = function("def f(a):\n    return a + 1 < a + 1")
    second = [change for change in changes(node) if change.rule == "off by one"][1]
    changed(node, second)
    assert ast.unparse(node) == "def f(a):\n    return a + 1 < a + 2"


def test_every_change_can_be_made_and_differs() -> None:
    text = "def f(a, b):\n    if a < 3 and not b:\n        a.append(b)\n    b[0] -= 1\n    return max(a, b) % 2"
    actual: list[Change] = changes(function(text))
    texts = set()
    for change in actual:
        node = function(text)
        changed(node, change)
        texts.add(ast.unparse(node))
    assert len(texts) == len(actual)
    assert text not in texts


@pytest.mark.parametrize(("rule", "line"), [("branch dropped", 4), ("else dropped", 6), ("comparison", 3)])
def test_a_change_says_which_line_must_be_executed(rule: str, line: int) -> None:
    node = function("def f(a, b):\n    a.append(b)\n    if a < b:\n        a.clear()\n    else:\n        b.clear()")
    assert [change.reached for change in changes(node) if change.rule == rule] == [line]


pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork")
"""Another test may have started threads, as JAX does; the child uses none."""

MODULE = '''
"""Breaks RT-04.1-16 and LANG-15-05 where it is changed."""

from functools import cache, wraps
from types import MappingProxyType

TABLE = {}


def entry(function):
    TABLE[function.__name__] = function

    @wraps(function)
    def call(*arguments):
        return function(*arguments)

    return call


@entry
def double(value):
    return value + value


class Box:
    def __init__(self, size):
        self.size = size

    @property
    def half(self):
        return self.size / 2

    @classmethod
    def of(cls, size):
        return cls(size * 4)


def adder(by):
    def add(value):
        return value + by

    return add


add_three = adder(3)

UNITS = MappingProxyType({"thin": 1, "thick": 2, "fat": 2, True: 2})


def width(unit):
    return UNITS[unit]


class Lid(Box):
    colour = "red"

    @property
    def weight(self):
        return 1


class Floor(Box):
    colour = "red"

    @property
    def weight(self):
        return self.size
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package `mutable` with a package `part`."""
    folder = tmp_path / "mutable" / "part"
    folder.mkdir(parents=True)
    (tmp_path / "mutable" / "__init__.py").write_text("")
    (folder / "__init__.py").write_text("")
    (folder / "things.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("mutable.part.things")
    for name in [name for name in sys.modules if name.partition(".")[0] == "mutable"]:
        del sys.modules[name]


def mutant(ending: str) -> Mutant:
    (found,) = [mutant for mutant in mutants_of("mutable", ["part"]) if mutant.name.startswith(f"part.things.{ending}")]
    return found


def in_a_child(act: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0 if act() else 1)
    return os.waitpid(child, 0)[1] == 0


def test_a_mutant_says_where_it_is(package: ModuleType) -> None:
    actual = mutant("Box.half/operator")
    assert (actual.package, actual.module) == ("part", "mutable.part.things")
    assert actual.description == "line 31: 'self.size / 2' becomes 'self.size * 2'"
    assert actual.clauses == {"RT-04.1-16", "LANG-15-05"}


def test_a_package_that_is_not_there_is_refused(package: ModuleType) -> None:
    with pytest.raises(ValueError, match="mutable has no package 'cellar'"):
        mutants_of("mutable", ["cellar"])


def test_modules_that_nothing_has_imported_yet_are_mutated_too(package: ModuleType) -> None:
    del sys.modules["mutable.part.things"]
    assert mutants_of("mutable", ["part"])


def test_a_sample_follows_from_its_seed(package: ModuleType) -> None:
    every = mutants_of("mutable", ["part"])
    assert sample(every, 3, seed=1) == sample(every, 3, seed=1)
    assert {tuple(sample(every, 3, seed=seed)) for seed in range(20)} != {tuple(sample(every, 3, seed=1))}
    assert set(sample(every, 3, seed=1)) < set(sample(every, 4, seed=1))
    assert set(sample(every, 3, seed=1)) <= set(sample(every[:5], 3, seed=1)) | set(every[5:])
    assert sample(every, 1000, seed=1) == sorted(every, key=lambda mutant: mutant.name)


def test_a_decorated_function_is_changed_wherever_it_is_held(package: ModuleType) -> None:
    change = mutant("double")

    def act() -> bool:
        assert package.double(3) == 6
        return install(change) and package.double(3) == 0 and package.TABLE["double"](3) == 0

    assert in_a_child(act)
    assert package.double(3) == 6


def test_a_method_behind_a_descriptor_is_changed(package: ModuleType) -> None:
    change = mutant("Box.of/operator")
    held = package.Box.of
    assert in_a_child(lambda: install(change) and held(1).size != 4)


def test_a_closure_that_exists_is_changed(package: ModuleType) -> None:
    change = mutant("adder")
    assert in_a_child(lambda: install(change) and package.add_three(1) == -2)


def test_one_member_of_a_family_becomes_its_neighbour(package: ModuleType) -> None:
    """An entry of a table, and what a class defines as its siblings do; members that are equal are left alone."""
    members = [mutant for mutant in mutants_of("mutable", ["part"]) if mutant.change.rule == "member"]
    assert [mutant.name.partition("things.")[2] for mutant in members] == [
        "UNITS/member/0",
        "UNITS/member/3",
        "Lid.weight/member/0",
        "Floor.weight/member/0",
    ]
    table, weight = members[0], members[2]
    assert table.description == "line 47: \"UNITS['thin']\" becomes \"UNITS['thick']\""
    assert [line for _, line in table.reached] == [51]
    assert [line for _, line in weight.reached] == [59]

    def watch() -> bool:
        read: list[str] = []
        for member in members:
            assert member.exchange is not None
            member.exchange.watch(partial(read.append, member.name))
        sizes = package.width("thin"), package.width("thick"), package.width(True), package.Lid.colour
        return sizes == (1, 2, 2, "red") and read == [members[0].name]

    assert in_a_child(watch)
    assert in_a_child(lambda: install(table) and [*map(package.width, package.UNITS)] == [2, 2, 2, 2])
    assert in_a_child(lambda: install(weight) and package.Lid(7).weight == 7)


def test_a_frozen_function_is_changed(package: ModuleType) -> None:
    import gc

    change = mutant("adder")

    def act() -> bool:
        gc.freeze()
        return install(change) and package.add_three(1) == -2

    assert in_a_child(act)


def larger(first: int, second: int) -> int:
    if first > second:
        return first
    return max(other for other in [second])


def test_a_branch_that_is_not_taken_is_not_executed() -> None:
    start = inspect.getsourcelines(larger)[1]
    with _Trace({__file__: {start + 1, start + 2}}) as seen:
        larger(1, 2)
    assert list(seen) == [(__file__, start + 1)]


def test_lines_of_other_functions_are_left_alone() -> None:
    with _Trace({__file__: {1}}) as seen:
        larger(2, 1)
    assert not seen


def act(task: str) -> str:
    if task == "dies":
        os.abort()
    if task == "never ends":
        time.sleep(3600)
    return f"{task} {os.getpid()}"


def test_every_task_has_its_result_and_a_process() -> None:
    actual = dict(isolated(2, act, ["a", "b", "c"], patience=60))
    words = [str(actual[place]).split() for place in range(3)]
    assert [name for name, _ in words] == ["a", "b", "c"]
    assert len({number for _, number in words} | {str(os.getpid())}) == 4


def test_a_process_that_dies_or_does_not_end_has_no_result() -> None:
    actual = dict(isolated(2, act, ["dies", "never ends", "a"], patience=3))
    assert (actual[0], actual[1]) == (None, None)
    assert str(actual[2]).startswith("a ")


COMMAND = [sys.executable, "-m", "tessera_conformance", "strength", "--mutants", "100000", "--packages", "abi"]
CHOSEN = ["--only", "abi.parameters.layout_of/", "--cases", "abi/parameter-layout", "--jobs", "2"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *CHOSEN, *arguments], capture_output=True, text=True, timeout=300)


def by_name(journal: Path) -> dict[str, dict[str, Any]]:
    return {line["name"]: line for line in map(json.loads, journal.read_text().splitlines())}


@pytest.mark.slow
def test_mutants_are_killed_survive_or_are_explained(tmp_path: Path) -> None:
    """The layout of parameters is judged by these cases; what survives can be explained in a file, with its reason.

    In a second run that knows of the first, what caught a mutant is the first case that is put to it.
    """
    ended = run("--output", str(tmp_path))
    assert ended.returncode in (0, 1), ended.stderr
    document = json.loads((tmp_path / "mutants.json").read_text())
    counts, left = document["packages"]["abi"], document["survivors"]
    assert counts["killed"] > 0
    assert counts["mutants"] == counts["killed"] + counts["survived"] + counts["not executed"]
    assert len((tmp_path / "mutants.jsonl").read_text().splitlines()) == counts["mutants"]
    assert len(left) == counts["survived"] + counts["not executed"]
    listed = "\n".join(
        f"[[mutant]]\nname = {json.dumps(mutant['name'])}\nbecomes = {json.dumps(' '.join(mutant['after'].split()))}\n"
        'reason = "a test of the command"'
        for mutant in left
    )
    (tmp_path / "equivalent.toml").write_text(listed)
    known = ["--known", str(tmp_path / "mutants.jsonl"), "--output", str(tmp_path / "again")]
    again = run("--equivalents", str(tmp_path / "equivalent.toml"), *known)
    assert again.returncode == 0, again.stdout
    assert "100.0 %" in again.stdout
    before, after = (by_name(folder / "mutants.jsonl") for folder in (tmp_path, tmp_path / "again"))
    caught = {name: line for name, line in before.items() if line["killer"]}
    assert any(line["cases"] > 1 for line in caught.values())
    assert {name: (after[name]["killer"], after[name]["cases"]) for name in caught} == {
        name: (line["killer"], 1) for name, line in caught.items()
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[mutant]]\nname = 'a'\nbecomes = 'b'\n", "entry 1 lacks reason"),
        ("[[mutant]]\nfunction = 'a'\n", "entry 1 lacks reason"),
        ("[[mutant]]\nreason = 'a'\n", "entry 1 lacks name, becomes"),
        ("[[mutant", "equivalent.toml: "),
    ],
)
def test_a_bad_list_of_equivalents_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "equivalent.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=expected):
        read_equivalents(path)


@pytest.mark.parametrize(
    ("about", "same", "others"),
    [
        ({"name": "graph.a.f/unary/3", "becomes": "x or y"}, 1, 2),
        ({"function": "graph.a.f"}, 2, 1),
        ({"module": "graph.a"}, 3, 0),
        ({"name": "graph.a.f/unary/3", "becomes": "x and y"}, 0, 3),
    ],
)
def test_an_entry_speaks_of_a_mutant_a_function_or_a_module(
    tmp_path: Path, about: dict[str, str], same: int, others: int
) -> None:
    """A place that becomes something else is another mutant, and an entry that speaks of none is named."""
    (tmp_path / "graph.toml").write_text(
        "[[mutant]]\nreason = 'words'\n" + "".join(f"{key} = {value!r}\n" for key, value in about.items())
    )
    equivalents = read_equivalents(tmp_path)
    mutants = [
        command_mutant("f/unary/3", "x or\n  y"),
        command_mutant("f/unary/9", "x"),
        command_mutant("g/unary/3", "x or y"),
    ]
    assert [explained(mutant, equivalents) for mutant in mutants] == [True] * same + [False] * others
    assert stale(equivalents, mutants) == ([] if same else list(equivalents))
    assert stale({"tile.a.f": "words"}, mutants) == []


def command_mutant(place: str, after: str) -> Mutant:
    """One of a module `graph.a`."""
    change = Change("unary", 3, 1, "not x", after, 1)
    return Mutant(f"graph.a.{place}", "tessera_reference.graph.a", "graph", ("a.py", "f", 1), change, frozenset())


def test_a_journal_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mutants.jsonl"
    path.write_text('{"name": "a", "killer": "b"}\n{}\n')
    with pytest.raises(ValueError, match=r"mutants\.jsonl, line 2"):
        read_killers(path)


def test_an_unknown_package_is_one_line_before_the_suite_is_collected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "suite_of", None)
    assert main(["strength", "--mutants", "100000", "--packages", "cellar"]) == 2
    assert capsys.readouterr() == ("", "error: --packages: tessera_reference has no package 'cellar'\n")
