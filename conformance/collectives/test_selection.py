"""The choice of a collective's algorithm (collectives specification 1, 3.1, 3.2 and 8)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.collectives.kit.machines import device, text
from tessera_conformance.chapters.runtime.kit.refusals import refused
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected
from tessera_conformance.vectors.building import counted

INVALID = "TESS_ERR_INVALID_VALUE"
ALGO, TABLE = "TESSERA_COLL_ALGO", "TESSERA_COLL_TABLE"

SIZED = ["all_reduce", "reduce_scatter", "all_gather", "broadcast"]
NAMES = ["ring", "tree", "halving_doubling", "hierarchical", "direct"]
MIDDLE = {"tree", "halving_doubling"}
LARGE = 1 << 40


def chosen(check, impl, size, collective="all_reduce", ranks=4, **arguments):
    """Return the selection for a size."""
    return check.returns(impl.collectives.select(collective=collective, bytes=size, ranks=ranks, **arguments))


def judge_table(check, table):
    """Sizes ascend, and the last row has none."""
    sizes = [row["up_to"] for row in table]
    check.true(sizes[-1] is None and None not in sizes[:-1], "the last row alone has no size", sizes)
    check.equal(sizes[:-1], sorted(set(sizes[:-1])), "the sizes")
    check.true(all(row["algorithm"] in NAMES for row in table), "the names are known", table)


@clause("COLL-08-12", "COLL-01-03", "COLL-03.1-01", "COLL-03.1-02", "COLL-03.1-04")
@pytest.mark.parametrize(
    "topology",
    [
        pytest.param(None, id="no topology"),
        pytest.param(text(nodes=1, per_node=4), marks=feature("topology"), id="one node"),
    ],
)
@pytest.mark.parametrize("collective", SIZED)
def test_the_choice_moves_from_direct_over_tree_to_ring(impl, check, collective, topology):
    """In this order as messages grow, each of them (AMB-COLL-09); at every size the one of the table's row."""
    given = {"collective": collective} | ({} if topology is None else {"topology": topology})
    table = chosen(check, impl, 0, **given)["table"]
    judge_table(check, table)
    phases = ["middle" if row["algorithm"] in MIDDLE else row["algorithm"] for row in table]
    met = [phase for at, phase in enumerate(phases) if at == 0 or phases[at - 1] != phase]
    check.equal(met, ["direct", "middle", "ring"], "the phases of the table")
    for row, following in zip(table, [*table[1:], None], strict=True):
        last = LARGE if row["up_to"] is None else row["up_to"]
        actual = chosen(check, impl, last, **given)
        check.equal(
            (actual["algorithm"], actual["source"]), (row["algorithm"], "default"), f"the choice at {last} bytes"
        )
        if following is not None:
            actual = chosen(check, impl, last + 1, **given)
            check.equal(actual["algorithm"], following["algorithm"], f"the choice at {last + 1} bytes")


@clause("COLL-03.1-04")
@pytest.mark.parametrize("size", [0, 1])
def test_tiny_messages_are_sent_directly(impl, check, size):
    """The smallest messages are sent by the algorithm direct."""
    for collective in [*SIZED, "all_to_all"]:
        check.equal(chosen(check, impl, size, collective)["algorithm"], "direct", f"the choice for {collective}")


@clause("COLL-03.1-01")
@pytest.mark.parametrize("ranks", [2, 3, 7, 4096])
def test_large_messages_go_by_ring(impl, check, ranks):
    """For primes and for many ranks."""
    for collective in SIZED:
        check.equal(chosen(check, impl, LARGE, collective, ranks)["algorithm"], "ring", f"the choice for {collective}")


@feature("topology")
@clause("COLL-03.1-03", "COLL-01-03")
@pytest.mark.parametrize("collective", SIZED)
def test_large_messages_over_nodes_of_equal_size_go_hierarchically(impl, check, collective):
    """Two and three nodes of two; the sizes below are as on one node (AMB-COLL-44)."""
    one = chosen(check, impl, LARGE, collective, topology=text(nodes=1, per_node=4))["table"]
    for nodes in (2, 3):
        given = {"topology": text(nodes=nodes, per_node=2), "ranks": 2 * nodes}
        actual = chosen(check, impl, LARGE, collective, **given)
        check.equal(
            (actual["algorithm"], actual["source"]), ("hierarchical", "default"), f"the choice on {nodes} nodes"
        )
        check.equal(actual["table"][:-1], one[:-1], "the rows of smaller messages")
        check.equal(chosen(check, impl, 1, collective, **given)["algorithm"], "direct", "the choice for one byte")


@feature("topology")
@clause("COLL-03.1-03", "COLL-01-03", "COLL-03.1-01")
@pytest.mark.parametrize("ranks", [1, 2, 3], ids=["one rank", "one node", "two and one"])
def test_ranks_on_one_node_or_unevenly_spread_go_by_ring(impl, check, ranks):
    """The first devices of two nodes of two; and one device on each of two nodes."""
    actual = chosen(check, impl, LARGE, ranks=ranks, topology=text())
    check.equal(actual["algorithm"], "ring", "the choice")
    actual = chosen(check, impl, LARGE, ranks=2, topology=text(nodes=2, per_node=1))
    check.equal(actual["algorithm"], "ring", "the choice for one device on each node")


@feature("topology")
@clause("COLL-03.1-03")
def test_nodes_of_equal_size_are_counted_by_their_ranks(impl, check):
    """A third device on the second node takes no part; where it does, the nodes are uneven."""

    def change(document):
        document["devices"].append(device(22))
        document["links"].append({**document["links"][0], "name": "nv22", "a": 22, "b": "s2"})

    topology = text(change=change)
    check.equal(chosen(check, impl, LARGE, ranks=4, topology=topology)["algorithm"], "hierarchical", "of four ranks")
    check.equal(chosen(check, impl, LARGE, ranks=5, topology=topology)["algorithm"], "ring", "of five ranks")


@feature("topology", "auto-transport")
@clause("COLL-03.1-03")
def test_the_hierarchy_goes_by_nvlink_inside_a_node_and_by_rdma_between(impl, check):
    """The transports of its stages, for all pairs of devices."""
    topology = text(nodes=2, per_node=2)
    check.equal(chosen(check, impl, LARGE, topology=topology)["algorithm"], "hierarchical", "the choice")
    for source in (10, 11, 20, 21):
        for target in {10, 11, 20, 21} - {source}:
            actual = check.returns(impl.collectives.route(topology=topology, source=source, target=target))
            expected = "nvlink" if source // 10 == target // 10 else "rdma"
            check.equal(actual["path"], expected, f"the transport from {source} to {target}")


# A hint


@clause("COLL-03.2-04")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=feature("topology")) if name == "hierarchical" else name for name in NAMES]
)
@pytest.mark.parametrize("size", [0, 1 << 17, LARGE])
def test_a_hint_is_followed_at_every_size(impl, check, name, size):
    """A hint comes before environment and autotuner at every size; hierarchical where there are nodes."""
    given = {"algorithm": name} | ({"topology": text()} if name == "hierarchical" else {})
    for more in ({}, {"tuned": "tree"}, {"tuned": "ring"}):
        actual = chosen(check, impl, size, **given, **more)
        check.equal((actual["algorithm"], actual["source"]), (name, "hint"), "the choice")


@clause("COLL-03.2-04", "COLL-01-03")
@pytest.mark.parametrize("size", [0, 1 << 17, LARGE])
def test_auto_is_no_hint(impl, check, size):
    """The same as where the attribute is left out."""
    check.equal(chosen(check, impl, size, algorithm="auto"), chosen(check, impl, size), "the choice")


@clause("COLL-03.2-04")
@pytest.mark.parametrize(
    ("given", "near"),
    [("rings", "ring"), ("Tree", "tree"), ("halving-doubling", "halving_doubling"), ("dirct", "direct")],
)
def test_an_unknown_algorithm_is_refused_with_the_nearest_one(impl, check, given, near):
    """An unknown algorithm is refused as a hint and as the autotuner's result; so is an unknown collective."""
    usual = {"collective": "all_reduce", "bytes": 8, "ranks": 2}
    refused(check, impl.collectives.select(**usual, algorithm=given), INVALID, given, near)
    refused(check, impl.collectives.select(**usual, tuned=given), INVALID, given, near)
    answer = impl.collectives.select(**(usual | {"collective": "all_reduc"}))
    refused(check, answer, INVALID, "all_reduc", "all_reduce")


@feature("topology")
@clause("COLL-03.2-04", "COLL-03.1-03")
def test_a_hint_that_the_ranks_cannot_follow_is_unsupported(impl, check):
    """Hierarchical over uneven nodes; the message names what there is (AMB-COLL-45)."""
    answer = impl.collectives.select(
        collective="all_reduce", bytes=LARGE, ranks=3, topology=text(), algorithm="hierarchical"
    )
    refused(check, answer, "TESS_ERR_UNSUPPORTED", "hierarchical", "ring", "tree", "direct")


@clause("COLL-03.2-04", "COLL-03.2-06")
@pytest.mark.parametrize("name", ["tree", "halving_doubling", "hierarchical"])
def test_an_algorithm_that_an_all_to_all_does_not_have_is_not_selected(impl, check, name):
    """A hint is refused; the environment, a table or the autotuner is passed over (AMB-COLL-34, AMB-COLL-45)."""
    answer = impl.collectives.select(collective="all_to_all", bytes=8, ranks=4, algorithm=name)
    refused(check, answer, "TESS_ERR_UNSUPPORTED", name, "ring", "direct")
    for given in ({"environment": {ALGO: name}}, {"environment": {TABLE: f":{name}"}}, {"tuned": name}):
        answer = impl.collectives.select(collective="all_to_all", bytes=LARGE, ranks=4, **given)
        does_not_fit = "environment" in given and isinstance(answer, Rejected)
        check.reading("AMB-COLL-45", "an override that does not fit is refused", does_not_fit)
        actual = chosen(check, impl, LARGE, "all_to_all", **given)
        check.equal((actual["algorithm"], actual["source"]), ("direct", "default"), f"the choice with {given}")


@feature("topology")
@clause("COLL-01-03")
def test_more_ranks_than_devices_are_refused(impl, check):
    """Five ranks on four devices are refused."""
    answer = impl.collectives.select(collective="all_reduce", bytes=8, ranks=5, topology=text())
    refused(check, answer, INVALID, "5", "4")


# The autotuner


@clause("COLL-01-03")
@pytest.mark.parametrize("name", ["ring", "tree", "halving_doubling", "direct"])
def test_the_autotuner_goes_before_the_table(impl, check, name):
    """At sizes for which the table has another one."""
    for size in (0, LARGE):
        actual = chosen(check, impl, size, tuned=name)
        check.equal((actual["algorithm"], actual["source"]), (name, "autotuner"), "the choice")


@feature("topology")
@clause("COLL-01-03")
def test_a_tuned_algorithm_that_the_ranks_cannot_follow_is_passed_over(impl, check):
    """The autotuner measured it for other ranks."""
    actual = chosen(check, impl, LARGE, ranks=3, topology=text(), tuned="hierarchical")
    check.equal((actual["algorithm"], actual["source"]), ("ring", "default"), "the choice")


# The environment


@clause("COLL-03.2-06")
@feature("auto-algorithm")
@pytest.mark.parametrize("name", ["ring", "tree", "halving_doubling", "direct"])
def test_the_environment_overrides_auto(impl, check, name):
    """At every size, and over the autotuner (AMB-COLL-13)."""
    for size in (0, 1 << 17, LARGE):
        for given in ({}, {"algorithm": "auto"}, {"tuned": "tree"}, {"tuned": "ring"}):
            actual = chosen(check, impl, size, environment={ALGO: name}, **given)
            check.equal((actual["algorithm"], actual["source"]), (name, "environment"), "the choice")


OVERRIDES = [
    pytest.param({"environment": {ALGO: "tree"}}, "environment", marks=clause("COLL-03.2-06"), id="the algorithm"),
    pytest.param({"environment": {TABLE: ":tree"}}, "environment", marks=clause("COLL-08-17"), id="the table"),
    pytest.param({"tuned": "tree"}, "autotuner", marks=clause("COLL-01-03"), id="the autotuner"),
    pytest.param({"algorithm": "tree"}, "hint", marks=clause("COLL-03.2-04"), id="the attribute"),
]
"""The value given in place of the table, and the source of the choice that it makes."""


@feature("auto-algorithm")
@pytest.mark.parametrize(("given", "source"), OVERRIDES)
@pytest.mark.parametrize("collective", SIZED)
def test_the_choice_is_overridden_for_every_collective(impl, check, collective, given, source):
    """By a tree, where the table has direct for 8 bytes and ring for large messages (AMB-COLL-13, AMB-COLL-45)."""
    for size in (8, LARGE):
        actual = chosen(check, impl, size, collective, **given)
        check.equal((actual["algorithm"], actual["source"]), ("tree", source), f"the choice at {size} bytes")


@clause("COLL-03.2-06", "COLL-08-17")
@feature("auto-algorithm")
@pytest.mark.parametrize("hint", ["ring", "tree", "direct"])
def test_a_hint_wins_over_the_environment(impl, check, hint):
    """A hint comes before both variables of the environment (AMB-COLL-13)."""
    for environment in ({ALGO: "halving_doubling"}, {TABLE: ":halving_doubling"}):
        answer = chosen(check, impl, 8, algorithm=hint, environment=environment)
        actual = answer["algorithm"], answer["source"]
        check.reading("AMB-COLL-13", "environment beats everything", actual == ("halving_doubling", "environment"))
        check.equal(actual, (hint, "hint"), "the choice")


@clause("COLL-03.2-06")
@feature("auto-algorithm")
@pytest.mark.parametrize("environment", [{ALGO: "auto"}, {ALGO: ""}, {"COLL_ALGO": "tree"}, {}], ids=str)
def test_an_environment_that_says_nothing_overrides_nothing(impl, check, environment):
    """Neither the table nor the autotuner is overridden."""
    for given in ({}, {"tuned": "tree"}):
        for size in (0, LARGE):
            usual = chosen(check, impl, size, **given)
            check.equal(chosen(check, impl, size, environment=environment, **given), usual, "the choice")


@feature("topology", "auto-algorithm")
@clause("COLL-03.2-06")
def test_an_override_that_the_ranks_cannot_follow_is_passed_over(impl, check):
    """On to the autotuner, or to the table; where they can, it holds at every size (AMB-COLL-45)."""
    given = {"topology": text(), "environment": {ALGO: "hierarchical"}}
    actual = chosen(check, impl, 0, **given)
    check.equal((actual["algorithm"], actual["source"]), ("hierarchical", "environment"), "of four ranks")
    answer = impl.collectives.select(collective="all_reduce", bytes=LARGE, ranks=3, **given)
    check.reading("AMB-COLL-45", "an override that does not fit is refused", isinstance(answer, Rejected))
    actual = chosen(check, impl, LARGE, ranks=3, **given)
    check.equal((actual["algorithm"], actual["source"]), ("ring", "default"), "of three ranks")
    actual = chosen(check, impl, LARGE, ranks=3, tuned="tree", **given)
    check.equal((actual["algorithm"], actual["source"]), ("tree", "autotuner"), "of three ranks, tuned")


@clause("COLL-03.2-06")
@feature("auto-algorithm")
def test_an_unknown_override_is_refused_by_its_variable(impl, check):
    """An unknown algorithm in a variable is refused by the variable's name, with the nearest algorithm."""
    answer = impl.collectives.select(collective="all_reduce", bytes=8, ranks=2, environment={ALGO: "rign"})
    refused(check, answer, INVALID, ALGO, "rign", "ring")


@clause("COLL-03.2-06")
@feature("auto-algorithm")
@pytest.mark.parametrize(
    ("variable", "near"),
    [("TESSERA_COLL_ALG", ALGO), ("TESSERA_COLL_ALGOS", ALGO), ("TESSERA_COLL_TABEL", TABLE)],
)
def test_a_misspelled_variable_is_refused(impl, check, variable, near):
    """A variable that begins with TESSERA_COLL_ and is none of the three is refused, naming the nearest one."""
    for value in ("tree", ":ring", ""):
        answer = impl.collectives.select(collective="all_reduce", bytes=8, ranks=2, environment={variable: value})
        refused(check, answer, INVALID, variable, near)


ROWS = {
    "1000:tree,1KiB:direct,:ring": [(1000, "tree"), (1024, "direct"), (None, "ring")],
    "16KiB:direct,1MiB:tree,:ring": [(16 << 10, "direct"), (1 << 20, "tree"), (None, "ring")],
    ":halving_doubling": [(None, "halving_doubling")],
    "0:ring,3MiB:halving_doubling,:direct": [(0, "ring"), (3 << 20, "halving_doubling"), (None, "direct")],
}


@clause("COLL-08-17", "COLL-08-12")
@pytest.mark.parametrize(("table", "rows"), ROWS.items(), ids=ROWS)
def test_the_environment_gives_another_table(impl, check, table, rows):
    """A row's size is its own, the next byte the next row's; over the autotuner too.

    As AMB-COLL-45 has it.
    """
    for given in ({}, {"tuned": "tree"}):
        judge_rows(impl, check, table, rows, **given)


@feature("topology")
@clause("COLL-08-17", "COLL-08-12")
@pytest.mark.parametrize(("table", "rows"), ROWS.items(), ids=ROWS)
def test_the_environment_gives_nodes_another_table(impl, check, table, rows):
    """Its rows hold as they are written."""
    judge_rows(impl, check, table, rows, topology=text())


def judge_rows(impl, check, table, rows, **given):
    """At both ends of each row its algorithm is chosen, and the table is told."""
    for at, (up_to, algorithm) in enumerate(rows):
        first = 0 if at == 0 else rows[at - 1][0] + 1
        for size in (first, LARGE if up_to is None else up_to):
            actual = chosen(check, impl, size, environment={TABLE: table}, **given)
            tuned = (actual["algorithm"], actual["source"]) == (given.get("tuned"), "autotuner")
            check.reading("AMB-COLL-45", "the autotuner goes before a table", tuned)
            check.equal((actual["algorithm"], actual["source"]), (algorithm, "environment"), f"at {size} bytes")
            check.equal([(row["up_to"], row["algorithm"]) for row in actual["table"]], rows, "the table")


@clause("COLL-08-17", "COLL-03.2-06")
@feature("auto-algorithm")
def test_the_algorithm_of_the_environment_goes_before_its_table(impl, check):
    """If both variables are set, the algorithm counts and not the table."""
    actual = chosen(check, impl, 8, environment={ALGO: "tree", TABLE: "1KiB:direct,:ring"})
    check.equal((actual["algorithm"], actual["source"]), ("tree", "environment"), "the choice")


@clause("COLL-08-17")
@feature("auto-algorithm")
@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("16KiB:direct,1MiB:tree,:rings", ("rings", "ring")),
        ("16KiB:direct,1MiB:tree", ()),
        (":direct,:ring", ()),
        ("1MiB:direct,16KiB:tree,:ring", ()),
        ("1KiB:direct,1024:tree,:ring", ()),
        ("16kb:direct,:ring", ()),
        ("-1:direct,:ring", ()),
        ("1.5MiB:direct,:ring", ()),
        ("16KiB direct,:ring", ()),
        (",", ()),
    ],
)
def test_a_malformed_table_is_refused_by_its_variable(impl, check, table, names):
    """The variable is named and, of an unknown algorithm, the nearest name; other words are free (AMB-COLL-45)."""
    answer = impl.collectives.select(collective="all_reduce", bytes=8, ranks=2, environment={TABLE: table})
    refused(check, answer, INVALID, TABLE, *names)


@feature("operation-access", "collective-messages")
@clause("COLL-01-03", "COLL-03.2-04")
@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("operation", ["all_reduce", "all_gather"])
def test_auto_runs_by_what_is_selected(impl, check, operation, ranks):
    """The answer names an algorithm, which is that of its size, and the messages are those of that algorithm."""
    seen = set()
    for count in (1, 400, 18_000):
        inputs = [counted("int64", (count,), seed=970 + rank) for rank in range(ranks)]
        given = {"operation": operation, "inputs": inputs, **({"op": "max"} if operation == "all_reduce" else {})}
        actual = check.returns(impl.collectives.run(**given, algorithm="auto", messages=True))
        size = 8 * count * (ranks if operation == "all_gather" else 1)
        said = check.returns(impl.collectives.select(collective=operation, bytes=size, ranks=ranks))
        check.equal(actual.get("algorithm"), said["algorithm"], f"the algorithm for {size} bytes")
        named = check.returns(impl.collectives.run(**given, algorithm=said["algorithm"], messages=True))
        check.equal(actual["messages"], named["messages"], f"the messages of {said['algorithm']}")
        for rank, output in enumerate(actual["outputs"]):
            check.bits(output, named["outputs"][rank], f"rank {rank}")
        seen.add(said["algorithm"])
    check.true(len(seen) > 1, "sizes get different algorithms", sorted(seen))
