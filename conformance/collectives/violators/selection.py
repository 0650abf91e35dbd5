"""Algorithms against size, topology, hint, environment and autotuner (COLL 1, 3.1, 3.2 and 8)."""

from tessera_reference.collectives import links
from tessera_reference.collectives import selection as thresholds
from tessera_reference.collectives.selection import parse_table

from ...ir.violators.changes import changed
from .changes import answered, asked, left_out, lenient, refusing, silent

ALGO, TABLE = links.ALGORITHM_VARIABLE, links.TABLE_VARIABLE

USUAL = thresholds.tables()


def by_table(clause, name, description, text):
    """Return a violation with another table, for every collective."""
    other = dict.fromkeys(USUAL, parse_table(text, name))
    return changed(clause, name, description, ("collectives.selection.tables", lambda: other))


def on_nodes(clause, name, description, spans, **arguments):
    """Return a violation that allows the hierarchical algorithm by another rule about the ranks on nodes."""

    def spanning(topology, devices):
        used = [device.id for device in topology.devices] if arguments.get("all") else devices
        return spans([len(node) for node in topology.by_node(used)])

    return changed(clause, name, description, ("collectives.selection.spans_nodes", spanning))


def but_for(collective, member):
    """One collective is chosen without a member of what is asked."""
    return lambda given: left_out(member)(given) if given.get("collective") == collective else given


def tuned_first(given):
    """Return the question without the environment if the autotuner has chosen."""
    return left_out("environment")(given) if given.get("tuned") else given


def unsorted(text, where):
    *rows, last = text.split(",")
    try:
        rows.sort(key=lambda row: parse_table(f"{row},:ring", where)[0].up_to or 0)
    except Exception:  # a malformed row is reported as usual
        return parse_table(text, where)
    return parse_table(",".join(dict.fromkeys([*rows, last])), where)


def unended(text, where):
    last = text.rpartition(",")[2]
    return parse_table(text if last.startswith(":") or ":" not in last else f"{text},:ring", where)


SIZES = [
    by_table("COLL-01-03", "backwards", "takes ring for tiny messages", "16KiB:ring,1MiB:tree,:direct"),
    lenient("COLL-01-03", "any_ranks", "accepts more ranks than devices", "select", "ranks",
            lambda given: given | {"ranks": 2}),
    by_table("COLL-03.1-01", "direct_for_largest", "sends the largest messages directly",
             "16KiB:direct,1MiB:tree,1GiB:ring,:direct"),
    by_table("COLL-03.1-02", "no_middle", "has no trees", "64KiB:direct,:ring"),
    by_table("COLL-03.1-04", "nothing_by_ring", "takes ring for no bytes", "0:ring,16KiB:direct,1MiB:tree,:ring"),
    answered("COLL-08-12", "never_default", "tells the table as a hint", "select",
        lambda answer: (answer | {"source": answer["source"].replace("default", "hint")})),
]  # fmt: skip

NODES = [
    on_nodes("COLL-03.1-03", "two_nodes", "chooses hierarchical on two nodes alone",
             lambda counts: len(counts) == 2 and counts[0] == counts[1] > 1),
    on_nodes("COLL-03.1-03", "one_node", "chooses hierarchical on one node",
             lambda counts: len(set(counts)) == 1 and counts[0] > 1),
]  # fmt: skip

HINTS = [
    changed("COLL-03.2-04", "any_all_to_all", "selects any algorithm for all_to_all",
            ("collectives.selection.ALL_TO_ALL_ALGORITHMS", thresholds.ALGORITHMS)),
    asked("COLL-03.2-04", "autotuner_first", "lets the autotuner win over the hint", "select",
        lambda given: (left_out("algorithm")(given) if given.get("tuned") else given)),
    asked("COLL-03.2-04", "auto_is_ring", "takes auto for ring", "select",
        lambda given: (given | {"algorithm": "ring"} if given.get("algorithm") == "auto" else given)),
    refusing("COLL-03.2-04", "nearest_not_told", "does not tell the nearest name", "select", "did you mean", silent),
    lenient("COLL-03.2-04", "unfit_hint_ignored", "passes over a hint that the ranks cannot follow", "select",
            "algorithm hierarchical", left_out("algorithm")),
]  # fmt: skip


def only(*names):
    """Return a change that keeps some variables of the environment alone."""

    def change(given):
        found = {name: value for name, value in given.get("environment", {}).items() if name in names}
        return given | {"environment": found}

    return change


ENVIRONMENT = [
    *(
        asked(clause, f"{name}_of_{one}", f"passes it over for {one}", "select", but_for(one, member))
        for clause, name, member in (
            ("COLL-03.2-06", "environment", "environment"),
            ("COLL-08-17", "table", "environment"),
            ("COLL-01-03", "autotuner", "tuned"),
        )
        for one in ("reduce_scatter", "all_gather", "broadcast")
    ),
    asked("COLL-03.2-06", "autotuner_over_environment", "lets the autotuner win over the environment", "select",
          tuned_first),
    refusing("COLL-03.2-06", "variable_not_told", "does not name the variable", "select", ALGO, silent),
    asked("COLL-08-17", "table_first", "lets the table win over the algorithm of the environment", "select",
          lambda given: only(TABLE)(given) if TABLE in given.get("environment", {}) else given),
    changed("COLL-08-17", "unsorted", "puts rows in order", ("collectives.selection.parse_table", unsorted)),
    changed("COLL-08-17", "unended", "accepts a table without a last row",
        ("collectives.selection.parse_table", unended)),
    refusing("COLL-08-17", "table_not_told", "does not name the variable", "select", TABLE, silent),
]  # fmt: skip


def nodes_of_tables(answer):
    last = answer["table"][-1]
    if answer["source"] == "environment" and last["algorithm"] == "ring":
        return answer | {"table": [*answer["table"][:-1], last | {"algorithm": "hierarchical"}]}
    return None


REWRITTEN = answered("COLL-08-17", "rewritten", "changes the last row of the table", "select", nodes_of_tables)
