"""C headers whose types differ from the specification's in one place (runtime specification, section 4)."""

from .header import written

VIOLATORS = [
    *(written(clause, f"open_{tag}", f"tells what a {tag} holds",
            (f"typedef struct {tag}* {tag}_t;", f"struct {tag} {{ int number; }};\ntypedef struct {tag}* {tag}_t;"))
        for tag, clause in (
            ("tessContext", "RT-04.1-01"),
            ("tessMesh", "RT-04.1-02"),
            ("tessStream", "RT-04.3-01"),
            ("tessEvent", "RT-04.3-02"),
            ("tessModule", "RT-04.5-01"),
            ("tessKernel", "RT-04.5-02"),
            ("tessProfiler", "RT-04.8-01"),
        )),
    written("RT-04.1-01", "numbered_context", "has numbers for contexts",
        ("typedef struct tessContext* tessContext_t;", "typedef unsigned long tessContext_t;")),
    written("RT-04.1-15", "exchanged_statuses", "exchanges two statuses",
        ("  TESS_ERR_TIMEOUT,\n  TESS_ERR_ABI_VERSION_MISMATCH,",
        "  TESS_ERR_ABI_VERSION_MISMATCH,\n  TESS_ERR_TIMEOUT,")),
    written("RT-04.4-12", "memory_kind_is_int", "has a memory kind that is an int",
        ("} tessMemKind;", "};\ntypedef int tessMemKind;")),
    written("RT-04.4-13", "copies_from_one", "counts copies from 1", ("{ TESS_COPY_H2D,", "{ TESS_COPY_H2D = 1,")),
    written("RT-04.6-14", "operator_is_unsigned", "has an operator that is unsigned",
        ("} tessCollOp;", "};\ntypedef unsigned tessCollOp;")),
    written("RT-04.2-01", "dp_before_pp", "exchanges pp and dp", ("int tp, pp, dp, ep;", "int tp, dp, pp, ep;")),
    written("RT-04.5-07", "unsigned_grid", "has an unsigned grid", ("int grid[3];", "unsigned grid[3];")),
    written("RT-04.5-08", "pointed_block", "points to the block", ("int block[3];", "int* block;")),
    written("RT-04.5-10", "unsigned_shared", "counts shared bytes as unsigned",
        ("size_t shmemBytes;", "unsigned shmemBytes;")),
    written("RT-04.5-11", "signed_flags", "has signed flags", ("unsigned flags;", "int flags;")),
    written("RT-04.5-12", "flags_first", "has the flags before the grid", ("  unsigned flags;", " "),
        ("  int grid[3];", "  unsigned flags;\n  int grid[3];")),
    written("RT-04.7-01", "byte_switches", "has switches of a byte",
        ("int stableReductions;", "char stableReductions;")),
    written("RT-02-10", "no_mode_of_random_numbers", "has no mode of random numbers", ("  int rngStateless;", " ")),
    *(written(
        clause, f"{flag.lower()}_in_the_header", f"shifts {flag} in the header", (f"{flag} {old}", f"{flag} {new}"))
        for clause, flag, old, new in (
            ("RT-06-07", "TESS_LAUNCH_DEFAULT", "0u", "16u"),
            ("RT-06-08", "TESS_LAUNCH_DETERMINISTIC", "(1u << 0)", "(1u << 4)"),
            ("RT-06-10", "TESS_LAUNCH_CAPTURE", "(1u << 1)", "(1u << 2)"),
            ("RT-06-12", "TESS_LAUNCH_PERSISTENT", "(1u << 2)", "3u"),
            ("RT-06-14", "TESS_LAUNCH_LOW_LATENCY", "(1u << 3)", "3u"),
        )),
]  # fmt: skip
