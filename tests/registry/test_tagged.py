"""Tags read from test files that are never imported."""

from __future__ import annotations

import pytest

from tessera_conformance.registry import tagged_cases


@pytest.fixture
def tags(workshop):
    def read(text, name="ir/test_words.py"):
        workshop.add_tests(name, "raise RuntimeError('imported')\n" + text)
        return tagged_cases(workshop.suite)

    return read


def test_a_decorated_function(tags):
    found = tags('@clause("A", "B")\n@other\ndef test_it(impl): ...\n')
    assert found.cases == {"A": ["ir/test_words.py::test_it"], "B": ["ir/test_words.py::test_it"]}
    assert found.problems == []


def test_the_mark_of_pytest_and_async_functions_count_too(tags):
    assert tags('@pytest.mark.clause("A")\nasync def test_it(): ...\n').cases == {"A": ["ir/test_words.py::test_it"]}


@pytest.mark.parametrize("mark", ['clause("A")', '[clause("A"), slow]'])
def test_a_module_mark_covers_every_test(tags, mark):
    found = tags(f"pytestmark = {mark}\ndef test_one(): ...\ndef test_two(): ...\ndef helper(): ...\n")
    assert found.cases == {"A": ["ir/test_words.py::test_one", "ir/test_words.py::test_two"]}


def test_a_class_tag_and_a_class_mark_cover_its_methods(tags):
    found = tags(
        '@clause("A")\nclass TestWords:\n    pytestmark = [clause("B")]\n'
        '    @clause("C")\n    def test_if(self): ...\n    def test_for(self): ...\n'
    )
    both = ["ir/test_words.py::TestWords::test_if", "ir/test_words.py::TestWords::test_for"]
    assert found.cases == {"A": both, "B": both, "C": both[:1]}


def test_marks_of_parameter_sets_in_the_decorator_or_in_a_constant(tags):
    found = tags(
        'WORDS = [pytest.param("if", marks=clause("A"))]\n'
        'MORE: list = [*WORDS, pytest.param("for", marks=clause("B"))]\n'
        '@pytest.mark.parametrize("word", [*MORE, pytest.param("in", marks=clause("C"))])\ndef test_word(word): ...\n'
    )
    assert set(found.cases) == {"A", "B", "C"}
    assert found.problems == []


def test_one_clause_gathers_its_cases_in_file_order(tags, workshop):
    workshop.add_tests("abi/deep/test_first.py", '@clause("A")\ndef test_it(): ...\n')
    assert tags('@clause("A")\ndef test_it(): ...\n').cases["A"] == [
        "abi/deep/test_first.py::test_it",
        "ir/test_words.py::test_it",
    ]


@pytest.mark.parametrize("name", ["ir/words.py", "harness/test_words.py", "ir/conftest.py"])
def test_files_that_are_no_tests_of_a_chapter_are_not_read(tags, name):
    assert tags('@clause("A")\ndef test_it(): ...\n', name).cases == {}


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("@clause(WORD)\ndef test_it(): ...\n", 2, "computed"),
        ('@clause(f"A-{1}")\ndef test_it(): ...\n', 2, "computed"),
        ("@clause()\ndef test_it(): ...\n", 2, "names no clause"),
        ('@clause("A")\ndef helper(): ...\n', 2, "marks no test"),
        ('@clause("A")\nclass Words:\n    def test_it(self): ...\n', 2, "marks no test"),
        ('UNUSED = [pytest.param(1, marks=clause("A"))]\n', 2, "marks no test"),
        ("def test_it(:\n", 2, "cannot be parsed"),
    ],
)
def test_a_tag_that_checks_nothing_is_reported_at_its_line(tags, workshop, text, line, problem):
    found = tags(text)
    (report,) = found.problems
    assert (report.file, report.line) == ("ir/test_words.py", line)
    assert problem in report.problem
    assert workshop.run("coverage")[0] == 1
