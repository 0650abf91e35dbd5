"""Algorithms against size, topology, hint, environment and autotuner (COLL 1, 3.1, 3.2 and 8)."""

from tessera_reference.abi.status import Failure
from tessera_reference.collectives import links
from tessera_reference.collectives import selection as thresholds
from tessera_reference.collectives.selection import parse_table

from ...ir.violators.changes import changed
from .changes import answered, asked, at, left_out, lenient, refusing, result_of, silent

ALGO, TABLE = links.ALGORITHM_VARIABLE, links.TABLE_VARIABLE


def by_table(clause, name, description, text):
    """Return a violation with another table, for every collective."""
    return result_of("collectives.selection.tables")(
        clause, name, description, lambda found: dict.fromkeys(found, parse_table(text, name))
    )


def on_nodes(clause, name, description, spans):
    """Return a violation that allows the hierarchical algorithm by another rule about the ranks on nodes."""
    return at("collectives.selection.spans_nodes")(
        clause, name, description, lambda usual, topology, devices: spans([*map(len, topology.by_node(devices))])
    )


def where(holds, change):
    """Return a change of the questions for which something holds."""
    return lambda given: change(given) if holds(given) else given


def unsorted(usual, text, where):
    *rows, last = text.split(",")
    try:
        rows.sort(key=lambda row: usual(f"{row},:ring", where)[0].up_to or 0)
    except Failure:  # a malformed row is reported as usual
        return usual(text, where)
    return usual(",".join(dict.fromkeys([*rows, last])), where)


def unended(usual, text, where):
    last = text.rpartition(",")[2]
    return usual(text if last.startswith(":") or ":" not in last else f"{text},:ring", where)


parsing = at("collectives.selection.parse_table")

VIOLATIONS = [
    by_table("COLL-01-03", "backwards", "takes ring for tiny messages", "16KiB:ring,1MiB:tree,:direct"),
    lenient("COLL-01-03", "any_ranks", "accepts more ranks than devices", "select", "ranks",
            lambda given: given | {"ranks": 2}),
    by_table("COLL-03.1-01", "direct_for_largest", "sends the largest messages directly",
             "16KiB:direct,1MiB:tree,1GiB:ring,:direct"),
    by_table("COLL-03.1-02", "no_middle", "has no trees", "64KiB:direct,:ring"),
    by_table("COLL-03.1-04", "nothing_by_ring", "takes ring for no bytes", "0:ring,16KiB:direct,1MiB:tree,:ring"),
    answered("COLL-08-12", "never_default", "tells the table as a hint", "select",
        lambda answer: answer | {"source": answer["source"].replace("default", "hint")}),
    on_nodes("COLL-03.1-03", "two_nodes", "chooses hierarchical on two nodes alone",
             lambda counts: len(counts) == 2 and counts[0] == counts[1] > 1),
    on_nodes("COLL-03.1-03", "one_node", "chooses hierarchical on one node",
             lambda counts: len(set(counts)) == 1 and counts[0] > 1),
    changed("COLL-03.2-04", "any_all_to_all", "selects any algorithm for all_to_all",
            ("collectives.selection.ALL_TO_ALL_ALGORITHMS", thresholds.ALGORITHMS)),
    asked("COLL-03.2-04", "autotuner_first", "lets the autotuner win over the hint", "select",
        where(lambda given: given.get("tuned"), left_out("algorithm"))),
    asked("COLL-03.2-04", "auto_is_ring", "takes auto for ring", "select",
        where(lambda given: given.get("algorithm") == "auto", lambda given: given | {"algorithm": "ring"})),
    refusing("COLL-03.2-04", "nearest_not_told", "does not tell the nearest name", "select", "did you mean", silent),
    lenient("COLL-03.2-04", "unfit_hint_ignored", "passes over a hint that the ranks cannot follow", "select",
            "algorithm hierarchical", left_out("algorithm")),
    *(
        asked(clause, f"{name}_of_{one}", f"passes it over for {one}", "select",
              where(lambda given, one=one: given.get("collective") == one, left_out(member)))
        for clause, name, member in (
            ("COLL-03.2-06", "environment", "environment"),
            ("COLL-08-17", "table", "environment"),
            ("COLL-01-03", "autotuner", "tuned"),
        )
        for one in ("reduce_scatter", "all_gather", "broadcast")
    ),
    asked("COLL-03.2-06", "autotuner_over_environment", "lets the autotuner win over the environment", "select",
          where(lambda given: given.get("tuned"), left_out("environment"))),
    refusing("COLL-03.2-06", "variable_not_told", "does not name the variable", "select", ALGO, silent),
    asked("COLL-08-17", "table_first", "lets the table win over the algorithm of the environment", "select",
          where(lambda given: TABLE in given.get("environment", {}),
                lambda given: given | {"environment": {TABLE: given["environment"][TABLE]}})),
    parsing("COLL-08-17", "unsorted", "puts rows in order", unsorted),
    parsing("COLL-08-17", "unended", "accepts a table without a last row", unended),
    refusing("COLL-08-17", "table_not_told", "does not name the variable", "select", TABLE, silent),
]  # fmt: skip


def rewritten(answer):
    last = answer["table"][-1]
    if answer["source"] == "environment" and last["algorithm"] == "ring":
        return answer | {"table": [*answer["table"][:-1], last | {"algorithm": "hierarchical"}]}
    return answer


REWRITTEN = answered("COLL-08-17", "rewritten", "changes the last row of the table", "select", rewritten)
