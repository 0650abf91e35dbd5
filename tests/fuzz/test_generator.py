"""Generated programs: every form of the language, texts that mean their tree, and one mistake each where illegal."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

import pytest
from hypothesis import HealthCheck, find, given, settings

from tessera_conformance.dsl import DTYPES, RESERVED
from tessera_conformance.fuzz import KINDS, Trial, expressions, programs, trials
from tessera_conformance.fuzz import tree as t
from tessera_conformance.fuzz.expressions import Expressions, Scope, Surroundings
from tessera_conformance.fuzz.mutations import (
    DECLARATIONS,
    LONGEST,
    MISTAKES,
    MISTAKES_WITH_NAMES,
    MUTATIONS,
    break_program,
    ends,
    mutate,
    slots_of,
    tokens_of,
    with_statements,
)
from tessera_conformance.fuzz.rendering import Style, names_of, odd, plain, render
from tessera_conformance.fuzz.statements import FEATURES, VARIANTS, GeneratedProgram, generate, vary
from tessera_conformance.fuzz.tree import Names, SeededChooser, TapeChooser
from tessera_conformance.fuzz.trials import chooser_of, make_trial
from tessera_conformance.oracle.elementwise import UNARY
from tessera_conformance.tensors import ELEMENT_FORMATS

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\]|\\.)*"|\d+\.\d*(?:[eE][+-]?\d+)?|\d\w*|[A-Za-z_]\w*|->|[=!<>]=|\S""", re.DOTALL
)


def tokens(text: str) -> list[str]:
    """The tokens of a text by a lexer that shares nothing with the generator; comments are left out."""
    return [each for each in TOKEN.findall(text) if not each.startswith(("//", "/*"))]


OPERATIONS = (
    "matmul softmax grad fft ifft cast transpose relu sigmoid silu gelu sum mean max min prod logsumexp argmax pow "
    "abs maximum minimum clamp select reshape broadcast concat pad iota "
    "gather scatter_add slice layer_norm rms_norm flash_attention uniform normal dropout"
).split() + list(UNARY)
DIGEST = """
import hashlib
from tessera_conformance.fuzz.trials import chooser_of, make_trial
print(hashlib.sha256("".join(repr(make_trial(chooser_of(9, n))) for n in range(60)).encode()).hexdigest())
"""


def test_a_trial_depends_on_seed_and_index_alone() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1", "77")
    }
    here = "".join(repr(make_trial(chooser_of(9, n))) for n in range(60))
    assert digests == {hashlib.sha256(here.encode()).hexdigest()}


def test_other_indices_give_other_programs() -> None:
    sources = Counter(make_trial(chooser_of(0, n)).subject.source for n in range(300))
    assert len(sources) > 290


def test_the_tape_gives_the_trial_again() -> None:
    for number in range(80):
        chooser = chooser_of(3, number)
        trial = make_trial(chooser, FEATURES)
        assert make_trial(TapeChooser(chooser.tape), FEATURES) == trial


def test_the_simplest_decisions_give_the_simplest_program() -> None:
    program = generate(TapeChooser([]))
    assert tokens(program.source) == "module m { func f ( ) -> fp32 { return 1.0 ; } }".split()


@pytest.mark.parametrize(
    "form",
    [
        *(
            rf"\b{word}\b"
            for word in "module func kernel type mesh let return if else for while in barrier assert".split()
        ),
        *(re.escape(sign) for sign in "+ - * / == != < > <= >= @{ @".split()),
        *(rf"x{dtype}\b" for dtype in DTYPES),
        *(rf": {dtype}\b" for dtype in DTYPES),
        r"layout=col_major",
        r"layout=blocked\(bm=2,bn=2\)",
        r"tensor<\?",
        r"tensor<N",
        r"tensor<0x",
        r"for \(\w+ in \w+: \w+\)",
        r"for \(\w+ in \w+: -?\w+: -\w+\)",
        r"\w+\[[^]]*:[^]]*\] = ",
        r"-> \w+ ",
        r": \w+ = \w+[,)]",
        *(rf"dist\.{name}\(" for name in "all_reduce all_gather broadcast reduce_scatter all_to_all".split()),
        *(rf"schedule\.{name}\(" for name in "tile pipeline prefetch".split()),
        *(rf"op\.{name}\(" for name in OPERATIONS),
        r"numerics_profile=",
        r"numerics\.profile\(",
        r"\[:: ?-",
        r"fragment<|memref<|fn\(",
        r"/\*.*\*/",
        r"//",
        r"\r\n",
        r"let \w+: [^=;]*;",
        r"return [^;]*,",
        r"return;",
        r"1e1|1\.5e-3|2\.E\+1|007",
    ],
)
def test_every_form_of_the_language_occurs(legal_programs: list[GeneratedProgram], form: str) -> None:
    pattern = re.compile(form)
    assert any(pattern.search(program.source) for program in legal_programs)


def test_features_are_used_only_where_they_are_claimed() -> None:
    extended = re.compile(r"op\.(?!matmul|softmax|grad)|complex|tensor<0x")
    for number in range(400):
        program = generate(SeededChooser(f"core/{number}"))
        assert not extended.search(plain(render(program.tree, Style())))


def test_names_are_no_reserved_words_and_declared_once(legal_programs: list[GeneratedProgram]) -> None:
    for program in legal_programs:
        assert not set(names_of(program.tree)) & {*RESERVED, *DTYPES}
        for module in program.tree.modules:
            names = [declaration.name for declaration in module.declarations if not isinstance(declaration, t.Raw)]
            assert len(names) == len(set(names))


def test_the_source_has_the_tokens_of_the_tree(legal_programs: list[GeneratedProgram]) -> None:
    """Spacing and comments change no token: a lexer that shares nothing with the generator finds the same ones."""
    for number, program in enumerate(legal_programs[:300]):
        text = render(program.tree, Style(chooser=SeededChooser(f"a/{number}"), respelled=True, parentheses=True))
        assert tokens(odd(text, SeededChooser(f"b/{number}"))) == tokens(plain(text))


def test_inputs_have_the_types_of_the_parameters(legal_programs: list[GeneratedProgram]) -> None:
    checked = 0
    for program in legal_programs:
        functions = {
            declaration.name: declaration
            for declaration in program.tree.modules[0].declarations
            if isinstance(declaration, t.Function)
        }
        if not program.function:
            continue
        main = functions[program.function.rpartition(".")[2]]
        assert list(program.inputs) == [each.name for each in main.parameters]
        sizes: dict[str, int] = {}
        for parameter in main.parameters:
            given = program.inputs[parameter.name]
            assert given.dtype == parameter.type.dtype
            assert len(given.shape) == len(parameter.type.shape)
            for extent, size in zip(parameter.type.shape, given.shape, strict=True):
                assert size == (extent if isinstance(extent, int) else sizes.setdefault(extent, size))
                checked += 1
    assert checked > 1000


def test_inputs_reach_special_values() -> None:
    type_ = t.Type("bf16", (4, 4))
    words = {
        int(word) for number in range(200) for word in expressions.input_for(type_, SeededChooser(f"{number}")).words()
    }
    exponents = {(word >> 7) & 0xFF for word in words}
    assert {0, 0xFF} <= exponents, "subnormals, infinities and NaN occur"
    assert {0x3F80, 0xBF80, 0x0000} <= words, "so do 1, -1 and 0"
    assert ELEMENT_FORMATS["bf16"].word_bytes == 2


def test_every_variant_occurs_and_names_follow(legal_programs: list[GeneratedProgram]) -> None:
    seen = set()
    for number, program in enumerate(legal_programs[:200]):
        what, source, function, inputs = vary(program, SeededChooser(f"v/{number}"))
        seen.add(what)
        assert bool(function) == bool(program.function)
        assert [operand.data for operand in inputs.values()] == [operand.data for operand in program.inputs.values()]
        if function:
            assert function.rpartition(".")[2] in tokens(source)
        assert set(inputs) <= set(tokens(source))
    assert seen == set(VARIANTS)


def test_another_order_has_the_same_tokens() -> None:
    for number in range(120):
        program = generate(SeededChooser(f"o/{number}"))
        text = plain(render(program.tree, Style()))
        what, source, _, _ = vary(program, SeededChooser(f"p/{number}"))
        if what == "other order":
            assert Counter(tokens(source)) >= Counter(tokens(text))
        if what == "other spaces and comments":
            assert [token for token in tokens(source) if token not in ("layout", "row_major", ";", "=")] == [
                token for token in tokens(text) if token not in ("layout", "row_major", ";", "=")
            ]


def nodes(item: object) -> Iterator[object]:
    """Every node of a tree."""
    if isinstance(item, tuple):
        for each in item:
            yield from nodes(each)
    elif is_dataclass(item):
        yield item
        for field in fields(item):
            yield from nodes(getattr(item, field.name))


def test_only_parameters_bring_dimensions_that_are_no_numbers(legal_programs: list[GeneratedProgram]) -> None:
    found = [node for program in legal_programs for node in nodes(program.tree) if isinstance(node, t.TensorValue)]
    assert len(found) > 500
    assert all(each.type.is_static for each in found)
    for program in legal_programs:
        for function in (node for node in nodes(program.tree) if isinstance(node, t.Function)):
            named = {
                extent
                for parameter in function.parameters
                for extent in parameter.type.shape
                if isinstance(extent, str)
            }
            lets = {extent for node in nodes(function.body) if isinstance(node, t.Let) for extent in node.type.shape}
            assert {name for name in lets if isinstance(name, str) and not name.startswith("?")} <= named


def test_names_have_the_types_that_their_places_ask_for(legal_programs: list[GeneratedProgram]) -> None:
    """A checker of a page: a bare name given to a let, an assignment or a return has the type asked for."""
    checked = 0
    for program in legal_programs:
        for module in program.tree.modules:
            constants = {
                declaration.name: declaration.type
                for declaration in module.declarations
                if isinstance(declaration, t.Let)
            }
            for declaration in module.declarations:
                if isinstance(declaration, t.Function):
                    names = constants | {parameter.name: parameter.type for parameter in declaration.parameters}
                    checked += checked_block(declaration.body, names, declaration.result)
    assert checked > 1000


def checked_block(block: t.Block, outer: Mapping[str, t.Type], result: t.Type | None) -> int:
    """Return the number of bare names checked in a block and the blocks in it."""
    names, checked = dict(outer), 0
    for statement in block:
        wanted: t.Type | None = None
        value: t.Expr | None = None
        match statement:
            case t.Let(name, wanted, value):
                names[name] = wanted
            case t.Assign(name, (), value):
                wanted = names[name]
            case t.Return((value,)):
                wanted = result
            case t.If(_, then, otherwise):
                checked += sum(checked_block(each, names, result) for each in (then, otherwise) if each is not None)
            case t.For(name=name, body=body):
                checked += checked_block(body, {**names, name: t.Type("int32")}, result)
            case t.While(_, body):
                checked += checked_block(body, names, result)
        if wanted is not None and isinstance(value, t.Var):
            checked += 1
            given = names[value.name]
            assert (given.dtype, given.layout, len(given.shape)) == (wanted.dtype, wanted.layout, len(wanted.shape))
            for have, want in zip(given.shape, wanted.shape, strict=True):
                assert have == want or str(want).startswith("?"), f"{value.name}: {given} for {wanted}"
    return checked


def test_every_path_returns_what_is_annotated(legal_programs: list[GeneratedProgram]) -> None:
    functions = [node for program in legal_programs for node in nodes(program.tree) if isinstance(node, t.Function)]
    annotated = [function for function in functions if function.result is not None]
    assert len(annotated) > 500
    assert all(ends(each.body[-1]) for each in annotated)
    assert sum(isinstance(each.body[-1], t.If) for each in annotated) > 20


def test_some_programs_have_two_modules(legal_programs: list[GeneratedProgram]) -> None:
    assert any(len(program.tree.modules) == 2 for program in legal_programs)
    assert any("." in program.function for program in legal_programs), "a function's name occurs in both"
    assert any(program.ranks > 1 for program in legal_programs)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (t.Binary("-", t.Var("a"), t.Binary("-", t.Var("b"), t.Var("c"))), "a - (b - c)"),
        (t.Binary("-", t.Binary("-", t.Var("a"), t.Var("b")), t.Var("c")), "a - b - c"),
        (t.Binary("*", t.Binary("+", t.Var("a"), t.Var("b")), t.Var("c")), "(a + b) * c"),
        (t.Binary("+", t.Binary("@", t.Var("a"), t.Var("b")), t.Var("c")), "(a @ b) + c"),
        (t.Binary("@", t.Binary("+", t.Var("a"), t.Var("b")), t.Var("c")), "a + b @ c"),
        (t.Binary("@", t.Var("a"), t.Binary("@", t.Var("b"), t.Var("c"))), "a @ (b @ c)"),
        (t.Binary("<", t.Binary("@", t.Var("a"), t.Var("b")), t.Var("c")), "a @ b < c"),
        (t.Binary("==", t.Binary("<", t.Var("a"), t.Var("b")), t.Var("c")), "(a < b) == c"),
        (t.Unary("-", t.Binary("*", t.Var("a"), t.Var("b"))), "-(a * b)"),
        (t.Binary("*", t.Unary("-", t.Var("a")), t.Var("b")), "-a * b"),
        (t.Index(t.Binary("+", t.Var("a"), t.Var("b")), (t.Literal("0"),)), "(a + b)[0]"),
        (t.Index(t.Unary("-", t.Var("a")), (t.Range(), t.Range(None, t.Literal("2")))), "(-a)[:,: 2]"),
    ],
)
def test_parentheses_stand_where_precedence_needs_them(expr: t.Expr, text: str) -> None:
    """By the table of section 14.2, where @ binds looser than +."""
    function = t.Function("f", (), None, (), (t.Return((expr,)),))
    printed = plain(render(t.Program((t.Module("m", (function,)),)), Style()))
    assert printed.splitlines()[2].strip() == f"return {text};"


def test_names_are_never_dtypes_by_their_numbers() -> None:
    names = Names(TapeChooser([]))
    made = [names.fresh(("fp",)) for _ in range(70)]
    assert len(set(made)) == 70
    assert not set(made) & set(DTYPES)


def test_a_literal_without_a_place_says_its_dtype() -> None:
    chooser = SeededChooser("literals")
    exprs = Expressions(Scope(Surroundings(frozenset(), Names(chooser)), chooser), ())
    texts = {exprs.literal("fp32", typed=False).text for _ in range(300)}
    assert len(texts) > 10
    assert all(re.search(r"[.e]", text) for text in texts)


def test_functions_change_places_and_nothing_else(legal_programs: list[GeneratedProgram]) -> None:
    changed = 0
    for number, program in enumerate(legal_programs[:400]):
        what, source, _, _ = vary(program, SeededChooser(f"order/{number}"))
        if what != "other order":
            continue
        for module in program.tree.modules:
            names = [declaration.name for declaration in module.declarations if isinstance(declaration, t.Function)]
            places = [re.search(rf"(func|kernel) {name}\(", source) for name in names]
            found = [place.start() for place in places if place is not None]
            assert len(found) == len(names)
            changed += found != sorted(found)
    assert changed > 5


MARK = t.Raw(("MARK", ";"))


def text_of(tree: t.Program) -> str:
    return plain(render(tree, Style()))


def by_hand(*body: t.Stmt, result: t.Type | None = None) -> t.Program:
    """A program with one func of one parameter."""
    function = t.Function("f", (t.Parameter("a", t.Type("int32")),), result, (), body)
    return t.Program((t.Module("m", (function,)),))


def test_a_statement_is_put_into_its_slot() -> None:
    one = t.Literal("1")
    inner = (t.Let("c", t.Type("fp32"), t.Literal("1.0")),)
    program = by_hand(t.Let("b", t.Type("int32"), one), t.If(t.Literal("true"), inner), t.Return((t.Var("b"),)))
    slots = slots_of(program)
    assert [sorted(slot.visible) for slot in slots] == [["a"], ["a", "b"], ["a", "b"], ["a", "b", "c"], ["a", "b"]]
    for number in range(len(slots)):
        lines = text_of(with_statements(program, number, [MARK])).splitlines()
        assert [line.strip() for line in lines].count("MARK;") == 1
    assert text_of(with_statements(program, 3, [MARK])).splitlines()[4:6] == ["      let c: fp32 = 1.0;", "      MARK;"]


def test_nothing_is_put_behind_a_return() -> None:
    both = t.If(t.Literal("true"), (t.Return(()),), (t.Return(()),))
    assert ends(both) and not ends(t.If(t.Literal("true"), (t.Return(()),)))
    assert len(slots_of(by_hand(t.Return(())))) == 1
    assert len(slots_of(by_hand(both))) == 3


def test_a_name_without_a_value_is_not_visible() -> None:
    program = by_hand(t.Let("b", t.Type("int32")), t.Assign("b", (), t.Literal("1")))
    assert [sorted(slot.visible) for slot in slots_of(program)] == [["a"], ["a"], ["a", "b"]]


def test_every_mistake_is_made(legal_programs: list[GeneratedProgram]) -> None:
    made: Counter[str] = Counter()
    for number, program in enumerate(legal_programs):
        for attempt in range(2):
            what, source, categories = break_program(program, SeededChooser(f"{number}/{attempt}"))
            made[what] += 1
            assert categories
            assert source != text_of(program.tree)
    for what in (
        *(mistake[0] for mistake in (*MISTAKES, *DECLARATIONS)),
        *(mistake[0] for mistake in MISTAKES_WITH_NAMES),
    ):
        assert made[what], f"never made: {what}"
    assert made["declared twice"] and made["no return at the end"] and made["an empty return"]
    assert all(made[f"{token} dropped"] for token in "{}();")


def test_mistakes_are_found_by_their_own_words() -> None:
    """No two mistakes share a description, so that a finding says which one it was."""
    words = [mistake[0] for mistake in (*MISTAKES, *DECLARATIONS)] + [mistake[0] for mistake in MISTAKES_WITH_NAMES]
    assert len(words) == len(set(words))


def test_a_dropped_token_is_missing() -> None:
    for number in range(400):
        program = generate(SeededChooser(f"d/{number}"))
        what, source, _ = break_program(program, SeededChooser(f"e/{number}"))
        if what.endswith(" dropped"):
            token = what.split()[0]
            counts = [list(render(program.tree, Style()).tokens).count(token), source.split().count(token)]
            assert counts[0] - counts[1] == 1


def test_mutated_texts_are_executed_where_they_end_soon() -> None:
    made = [make_trial(chooser_of(8, number), kinds=["mutant"]).subject for number in range(300)]
    executed = [each.source for each in made if each.function]
    assert len(executed) > 30
    assert not [each for each in executed if "while" in each or "for (" in each or "999" in each]
    assert any("while" in each.source for each in made)


def test_tokens_join_to_the_text() -> None:
    for number in range(100):
        text = make_trial(chooser_of(1, number), kinds=["mutant"]).subject.source
        assert "".join(tokens_of(text)) == text
        assert len(text) <= LONGEST
        text.encode("utf-8")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__.strip("_"))
def test_a_mutation_changes_texts_and_takes_empty_ones(mutation) -> None:
    text = "module m { func f(a: int32) -> int32 { return a + 1; } }"
    changed = {mutation(text, SeededChooser(f"{number}")) for number in range(40)} - {text}
    assert len(changed) > 5
    for number in range(10):
        assert isinstance(mutation("", SeededChooser(f"{number}")), str)


def test_mutated_texts_hold_what_is_no_program() -> None:
    texts = "".join(mutate("module m { }", SeededChooser(f"{number}")) for number in range(1500))
    for part in ("\x00", "\u2028", '"unfinished', "/* unfinished", "(" * 300, "9" * 400, "tensor<2xxfp32>"):
        assert part in texts


def test_a_mutated_text_stays_short() -> None:
    long = "let a: int32 = 1;\n" * 3000
    for number in range(60):
        assert len(mutate(long, SeededChooser(f"{number}"))) <= LONGEST


QUICK = settings(
    max_examples=60, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)


@QUICK
@given(programs())
def test_programs_are_drawn(program: GeneratedProgram) -> None:
    assert "module" in program.source
    assert program.declared[0][1]


@QUICK
@given(trials(kinds=("illegal",)))
def test_trials_of_a_kind_are_drawn(trial: Trial) -> None:
    assert trial.kind == "illegal"
    assert trial.categories
    assert "illegal" in KINDS


def test_what_is_found_is_small() -> None:
    found = find(programs(), lambda program: "barrier" in program.source, settings=settings(QUICK, max_examples=300))
    assert len(found.source) < 200


@pytest.fixture(scope="session")
def legal_programs() -> list[GeneratedProgram]:
    """Enough legal programs to meet every form of the language."""
    return [generate(SeededChooser(f"tests/{number}"), FEATURES) for number in range(1500)]
