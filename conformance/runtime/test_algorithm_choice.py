"""One choice of algorithm for all collectives of a runtime: environment, table by size, trace.

Runtime specification, 8.1 and 13, collectives specification, 3.1, 3.2 and 8; AMB-RT-180, -181, -183, AMB-COLL-13, -45.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.algorithms import NAMES, Traced, choose, plan_request, planned, under
from tessera_conformance.chapters.runtime.kit.mesh_session import DTYPE_IDS, SUM, opened
from tessera_conformance.chapters.runtime.kit.planned_modules import load_hinting
from tessera_conformance.chapters.runtime.kit.policies import STRICT
from tessera_conformance.chapters.runtime.kit.readings import rejected
from tessera_conformance.chapters.runtime.kit.refusals import refused
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.protocol import Returned
from tessera_conformance.vectors.building import counted

pytestmark = [feature("algorithm-control")]

ALGO, PATH, TABLE = "TESSERA_COLL_ALGO", "TESSERA_COLL_PATH", "TESSERA_COLL_TABLE"
COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
ANYWHERE = ("ring", "tree", "halving_doubling", "direct")
"""Algorithms that run on ranks however they are joined."""
SIZES = (8, 40, 4096, 8192, 40_000, 262_144, 262_152, 1 << 30)
"""Elements of fp32: multiples of eight on both sides of many bounds."""


# The default


@feature("auto-algorithm")
@clause("RT-13-08", "COLL-08-12", "COLL-01-03")
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_default_is_the_row_of_the_table(impl, check, collective):
    """The default is that of collectives.select at every size; several nodes may have hierarchical in the last row.

    As AMB-RT-04 and AMB-RT-180 have it.
    """
    session = opened(impl, check, 8)

    def defaults(nbytes: int) -> list[tuple[str, str]]:
        row = check.returns(impl.collectives.select(collective=collective, bytes=nbytes, ranks=8))
        last = row["algorithm"] == row["table"][-1]["algorithm"]
        return [(row["algorithm"], "default"), *([("hierarchical", "default")] if last else [])]

    plans = {count: planned(session, collective, count) for count in SIZES}
    for count, actual in plans.items():
        allowed = defaults(4 * count)
        if actual not in allowed:
            always = set(plans.values()) == {("ring", "default")}
            check.reading("AMB-RT-180", "the default is ring at every size", always)
            shares = all(plan in defaults(4 * count // 8) for count, plan in plans.items())
            check.reading("AMB-COLL-44", "sizes in a rank's share", shares)
        check.true(actual in allowed, f"the plan of {count} elements is one of {allowed}", actual)


@feature("auto-algorithm")
@clause("RT-13-08", "COLL-08-12", "COLL-03.1-01", "COLL-03.1-02", "COLL-03.1-04")
@pytest.mark.parametrize("dtype", ["int8", "fp32", "complex128"])
def test_the_default_goes_by_bytes(impl, check, dtype):
    """The same number of bytes is planned alike, whatever it holds; a byte is direct, a terabyte is not.

    As AMB-RT-180 has it.
    """
    session = opened(impl, check, 8)
    size = {"int8": 1, "fp32": 4, "complex128": 16}[dtype]
    for nbytes in (16, 1 << 13, 1 << 17, 1 << 40):
        actual = planned(session, count=nbytes // size, dtype=dtype)
        check.equal(actual, planned(session, count=nbytes // 4), f"the plan of {nbytes} bytes of {dtype}")
    check.equal(planned(session, count=0, dtype=dtype)[0], "direct", "the plan of nothing")
    check.true(planned(session, count=(1 << 40) // size, dtype=dtype)[0] in ("ring", "hierarchical"), "of a terabyte")


# The environment


@feature("env-vars", "env-overrides")
@clause("COLL-03.2-06")
@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("name", ANYWHERE)
def test_the_environment_chooses_where_nothing_hints(impl, check, name, collective):
    """At every size, over the autotuner's result and over one that it would find."""
    for tuning in ({}, {"TESS_AUTOTUNE": "1"}):
        session = under(impl, check, **{ALGO: name}, **tuning)
        for count in SIZES:
            check.equal(planned(session, collective, count), (name, "environment"), f"the plan of {count} elements")
        choose(session, "tree" if name == "ring" else "ring", "autotuner", collective)
        check.equal(planned(session, collective), (name, "environment"), "the plan beside a result of the autotuner")


@feature("env-vars", "env-overrides")
@clause("COLL-08-17", "COLL-08-12")
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_environment_gives_the_table(impl, check, collective):
    """A row's bytes are those of the full buffer, its size included; over the autotuner's result too.

    As AMB-RT-04 and AMB-COLL-45 have it.
    """
    session = under(impl, check, **{TABLE: "160:halving_doubling,1KiB:ring,3MiB:direct,:tree"}, TESS_AUTOTUNE="1")
    choose(session, "ring", "autotuner", collective)
    rows = {0: "halving_doubling", 40: "halving_doubling", 48: "ring", 256: "ring", 264: "direct"}
    rows |= {3 << 18: "direct", (3 << 18) + 8: "tree", 1 << 30: "tree"}
    tuned = all(planned(session, collective, count) == ("ring", "autotuner") for count in rows)
    check.reading("AMB-COLL-45", "the autotuner goes before a table", tuned)
    shares = {8 * count: name for count, name in rows.items()}
    by_shares = all(planned(session, collective, count) == (name, "environment") for count, name in shares.items())
    check.reading("AMB-COLL-44", "sizes in a rank's share", by_shares)
    for count, name in rows.items():
        check.equal(planned(session, collective, count), (name, "environment"), f"the plan of {count} elements")


@feature("env-vars", "env-overrides", "graph-ir-text")
@clause("RT-13-06", "COLL-03.2-06", "COLL-08-17")
@pytest.mark.parametrize("variables", [{ALGO: "direct"}, {TABLE: ":direct"}], ids=["algorithm", "table"])
def test_a_hint_wins_over_the_environment(impl, check, variables):
    """One of the schedule, and the plan of a module while it is loaded; then the environment again (RT-08.1-11)."""
    session = under(impl, check, **variables)
    for name in ("ring", "tree", "halving_doubling"):
        choose(session, name, "hint")
        actual = planned(session)
        check.reading("AMB-COLL-13", "environment beats everything", actual == ("direct", "environment"))
        check.equal(actual, (name, "hint"), "the plan with a hint")
    choose(session, None, "hint")
    check.equal(planned(session), ("direct", "environment"), "the plan once the hint is taken back")
    module = load_hinting(session, "tree")
    check.equal(planned(session), ("tree", "hint"), "the plan of the module")
    session.ask("tessModuleUnload", module=module)
    check.equal(planned(session), ("direct", "environment"), "the plan without the module")


@feature("env-vars", "env-overrides")
@clause("COLL-03.2-06", "COLL-08-17")
def test_the_algorithm_of_the_environment_goes_before_its_table(impl, check):
    """Both are set; auto and an empty value say nothing to a later context (AMB-RT-71)."""
    session = under(impl, check, **{ALGO: "tree", TABLE: ":direct"})
    check.equal(planned(session), ("tree", "environment"), "the plan with both")
    for nothing in ("auto", ""):
        session = under(impl, check, **{ALGO: nothing, TABLE: ":direct"})
        check.equal(planned(session), ("direct", "environment"), "the plan with the table")
        session = under(impl, check, **{ALGO: nothing, TABLE: "", PATH: nothing})
        check.equal(planned(session)[1], "default", "who decides")


@feature("env-vars", "env-overrides")
@clause("COLL-03.2-06")
def test_a_context_keeps_the_algorithm_that_it_found(impl, check):
    """Variables that change later are those of later contexts (AMB-RT-71, AMB-RT-181)."""
    first = under(impl, check, **{ALGO: "tree"})
    second = under(impl, check, **{ALGO: "ring"})
    third = under(impl, check)
    check.equal(
        [planned(algorithm)[0] for algorithm in (first, second)], ["tree", "ring"], "the plans of both contexts"
    )
    check.equal(planned(third)[1], "default", "who decides in a context that found nothing")


@feature("env-vars", "env-overrides")
@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        pytest.param(ALGO, "rign", ("rign", "ring"), marks=clause("COLL-03.2-06")),
        pytest.param(ALGO, "Tree", ("Tree", "tree"), marks=clause("COLL-03.2-06")),
        pytest.param(PATH, "nvlinc", ("nvlinc", "nvlink"), marks=clause("COLL-03.2-07")),
        pytest.param(PATH, "PCIe", ("PCIe", "pcie"), marks=clause("COLL-03.2-07")),
        pytest.param(TABLE, "1MiB:tree", (), marks=clause("COLL-08-17")),
        pytest.param(TABLE, "1MiB:tree,1KiB:direct,:ring", (), marks=clause("COLL-08-17")),
        pytest.param(TABLE, "1KiB:dirct,:ring", ("dirct", "direct"), marks=clause("COLL-08-17")),
        pytest.param("TESSERA_COLL_ALG", "tree", (ALGO,), marks=clause("COLL-03.2-06")),
        pytest.param("TESSERA_COLL_PATHS", "pcie", (PATH,), marks=clause("COLL-03.2-07")),
        pytest.param("TESSERA_COLL_TABEL", ":ring", (TABLE,), marks=clause("COLL-08-17")),
    ],
)
def test_a_variable_or_value_that_means_nothing_is_refused_by_name(impl, check, variable, value, words):
    """By tessInit, with the nearest name; once it is put right, tessInit succeeds (AMB-RT-181)."""
    check.returns(impl.runtime.tessxSetEnvironment(variables={variable: value}), "the environment is set")
    answer = impl.runtime.tessInit()
    if isinstance(answer, Returned):
        session = opened(impl, check, 8)
        plan = session.attempt("tessxCollectivePlan", **plan_request(session))
        later = rejected(plan, "TESS_ERR_INVALID_VALUE")
        check.reading("AMB-RT-181", "the first collective reports it", later)
        unset = isinstance(plan, Returned) and plan.value["source"] in ("default", "autotuner")
        check.reading("AMB-RT-181", "an unknown value counts as unset", unset)
    refused(check, answer, "TESS_ERR_INVALID_VALUE", variable, *words)
    check.returns(impl.runtime.tessxSetEnvironment(variables={}), "the environment is set")
    check.returns(impl.runtime.tessInit(), "tessInit succeeds")


@feature("env-vars", "env-overrides", "rank-memory")
@level("strict", "deterministic")
@clause("COLL-03.2-06", "COLL-03.2-07", "COLL-08-17", "RT-13-03", "RT-13-04", "RT-13-05")
@pytest.mark.parametrize(
    "variables",
    [*({ALGO: name} for name in NAMES), *({PATH: name} for name in ("nvlink", "pcie", "rdma", "network")),
     {TABLE: "100:ring,:halving_doubling"}],
    ids=lambda given: "-".join(given.values()).replace(":", "").replace(",", "-"),
)  # fmt: skip
def test_the_environment_changes_no_bits(impl, check, variables):
    """Sums of eight ranks that depend on their order."""
    brought = [counted("fp32", (40,), seed=1870 + rank, exponents=(-12, 12)) for rank in range(8)]
    actual = []
    for environment in ({}, variables):
        session = under(impl, check, **environment)
        session.set_policy(STRICT)
        pointer = session.allocate(160)
        for rank, data in enumerate(brought):
            session.poke(rank, pointer, data.data)
        session.all_reduce(pointer, count=40, dtype="fp32")
        session.synchronize()
        actual.append([session.peek(rank, pointer, 160).hex() for rank in range(8)])
    check.equal(actual[1], actual[0], "the bits on every rank")


# The plan is what happens


def queued(session, collective, count):
    """A collective of so many elements of fp32."""
    pointer = session.upload(bytes(4 * count))
    name = "buffer" if collective in ("all_reduce", "broadcast") else "inout"
    function = {"all_reduce": "tessAllReduce", "reduce_scatter": "tessReduceScatter", "all_gather": "tessAllGather"}
    whole = {"mesh": session.mesh, name: pointer, "count": count, "dtype": DTYPE_IDS["fp32"], "stream": session.stream}
    operator = {"op": SUM} if "reduce" in collective else {}
    place = {"root": 1} if collective == "broadcast" else {"axis": "dp"}
    session.ask(function.get(collective, "tessBroadcast"), **whole, **operator, **place)


def judge_trace(check, traced, plans):
    """Each rank's slices name the algorithms of the plans, in order."""
    for rank in range(4):
        actual = [part["args"].get("algorithm") for part in traced.slices if part["args"].get("rank") == rank]
        check.equal(actual, [plan[0] for plan in plans], f"the algorithms that rank {rank} ran by")


@clause("RT-13-06", "RT-13-07", "RT-13-08")
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_a_collective_runs_by_its_plan(impl, check, tmp_path, collective):
    """By default at several sizes, then by the autotuner's result, then by a hint (AMB-RT-183, AMB-RT-04)."""
    session = opened(impl, check, 4)
    plans = []
    with Traced(session, tmp_path / "trace.json") as traced:
        for count in (4, 8192, 400_000):
            plans.append(planned(session, collective, count))
            queued(session, collective, count)
        for source, names in (("autotuner", ("ring", "tree")), ("hint", ("hierarchical", "direct", "ring"))):
            for name in names:
                choose(session, name, source, collective)
                plans.append(planned(session, collective, 8))
                queued(session, collective, 8)
    judge_trace(check, traced, plans)


@feature("env-vars", "env-overrides")
@clause("COLL-03.2-06", "COLL-08-17")
@pytest.mark.parametrize(
    "variables",
    [{ALGO: "tree"}, {ALGO: "halving_doubling"}, {TABLE: "64:tree,:direct"}, {"TESS_AUTOTUNE": "1"}],
    ids=["tree", "halving-doubling", "table", "autotuner"],
)
def test_a_collective_runs_by_the_plan_of_the_environment(impl, check, tmp_path, variables):
    """And by what the autotuner finds, at several sizes."""
    session = under(impl, check, 4, **variables)
    plans = []
    with Traced(session, tmp_path / "trace.json") as traced:
        for count in (4, 16, 20, 8192, 400_000):
            plans.append(planned(session, "all_reduce", count))
            queued(session, "all_reduce", count)
    judge_trace(check, traced, plans)
    source = "autotuner" if "TESS_AUTOTUNE" in variables else "environment"
    check.equal([plan[1] for plan in plans], [source] * len(plans), "who decides")


@feature("per-rank-issue")
@clause("RT-13-06", "RT-13-08", "COLL-03.2-04")
@pytest.mark.parametrize("named", [None, "ring", "tree", "direct", "halving_doubling"])
def test_what_ranks_issue_for_themselves_runs_by_its_plan(impl, check, tmp_path, named):
    """Or by the algorithm that they name, over a hint."""
    session = opened(impl, check, 4)
    choose(session, "hierarchical", "hint")
    plan = planned(session, "all_reduce", 40)
    pointer = session.upload(bytes(160))
    whole = {"mesh": session.mesh, "collective": "all_reduce", "buffer": pointer, "count": 40, "op": SUM, "axis": "dp"}
    whole |= {"dtype": DTYPE_IDS["fp32"], "stream": session.stream} | ({"algorithm": named} if named else {})
    with Traced(session, tmp_path / "trace.json") as traced:
        for rank in (2, 0, 3, 1):
            session.ask("tessxIssue", rank=rank, **whole)
    judge_trace(check, traced, [(named, "hint") if named else plan])
