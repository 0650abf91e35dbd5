"""Verifiers of Target IR that overlook one kind of mistake, or refuse one legal entry (8.1 and 16)."""

from .verifiers_of_text import misreads, overlooks, turns_down

ENTRY = [
    overlooks("unknown_attribute", "LANG-08.1-01", "an attribute that no entry has", "there is no attribute"),
    overlooks("another_level", "LANG-08.1-01", "an entry of Tile IR", "kernel of Tile IR"),
    turns_down("order", "LANG-08.1-01", "attributes in another order", r"-> \(\), stream = "),
    turns_down("second_entry", "LANG-08.1-01", "a second entry", r"target\.kernel.*target\.kernel"),
    overlooks("unlabelled", "LANG-16-01", "that a symbol does not begin with tss_kernel_", "the symbol is"),
    turns_down("plain_names", "LANG-16-01", "digits in a mangled name", r'sym_name = "tss_kernel_\w*\d'),
]

PRINTED = [
    misreads("turned_grid", "LANG-08.1-07", "takes the extents backwards", r"grid=\((\d+),(\d+),(\d+)\)",
        r"grid=(\3,\2,\1)"),
    misreads("narrow_scalars", "LANG-08.1-03", "passes an i64 in 32 bits", r"\bi64\b", "i32"),
    misreads("named_twice", "LANG-08.1-01", "takes the last of two attributes", r"block=\(1,1,1\), (block=)", r"\1"),
]  # fmt: skip

PARAMETERS = [
    overlooks("any_space", "LANG-08.1-02", "that a pointer is into another memory", r"%\w+ is !llvm\.ptr<"),
    overlooks("tensors", "LANG-08.1-02", "that a parameter is a tensor", r"%\w+ is (tensor|memref|vector)<"),
    overlooks("complex_behind", "LANG-08.1-03", "that a scalar behind the first is complex", r"%n[1-9] is complex"),
]

EXTENTS = [
    overlooks("no_grid", "LANG-08.1-04", "that there is no grid", "states no grid"),
    overlooks("no_block", "LANG-08.1-11", "that there is no block", "states no block"),
    overlooks("any_grid", "LANG-08.1-07", "that a grid is not of three extents of at least 1", "its grid is"),
    overlooks("any_block", "LANG-08.1-08", "that a block is not of three extents of at least 1", "its block is"),
    overlooks("many_threads", "LANG-08.1-08", "that a block has more than 1024 threads", r"its block has \d+ threads"),
]

SHARED = [
    overlooks("undeclared", "LANG-08.1-05", "that shared memory is not declared", "does not declare"),
    overlooks("too_little", "LANG-08.1-05", "that arrays take more than is declared", "its globals take"),
    overlooks("negative", "LANG-08.1-09", "that the size of shared memory is negative", "smem_bytes is"),
    overlooks("too_much", "LANG-08.1-09", "that a block of the target has less shared memory",
        r"it declares \d+ bytes"),
    turns_down("no_segment", "LANG-08.1-06", "a dynamic segment that is stated", "dynamic_smem = true"),
    overlooks("any_alignment", "LANG-16-05", "an alignment that is no power of two", "an alignment of"),
]  # fmt: skip

STREAMS = [
    overlooks("numbered_streams", "LANG-08.1-10", "that a stream is no name", "stream is not"),
    overlooks("other_target", "LANG-08-01", "that a kernel is made for another target", "is made for"),
    overlooks("other_level", "LANG-08-01", "operations of other levels", "operation"),
]

OTHER_VENDOR = [
    overlooks(name, clause, f"that {operation} is of the other vendor", rf"{operation}\S* is an instruction of")
    for name, clause, operation in (
        ("mma_on_amd", "LANG-08.2-05", r"nvvm\.mma"),
        ("ldmatrix_on_amd", "LANG-08.2-06", r"nvvm\.ldmatrix"),
        ("copies_on_amd", "LANG-08.2-07", r"nvvm\.cp"),
        ("bar_on_amd", "LANG-08.2-08", r"nvvm\.barrier0"),
        ("shfl_on_amd", "LANG-08.2-09", r"nvvm\.shfl"),
        ("mfma_on_nvidia", "LANG-08.2-10", r"rocdl\.mfma"),
        ("lds_on_nvidia", "LANG-08.2-11", r"rocdl\.ds_read"),
        ("permutations_on_nvidia", "LANG-08.2-12", r"rocdl\.ds_bpermute"),
    )
]

FORMS = [
    overlooks("mma_shapes", "LANG-08.2-05", "that there is no mma.sync of a shape", "there is no mma"),
    overlooks("shares", "LANG-08.2-05", "that a lane holds another share", r"[abc] is vector"),
    overlooks("generations", "LANG-08.2-10", "that an mfma is of another generation", r"rocdl\.mfma\S* on gfx"),
    overlooks("matrices", "LANG-08.2-06", "that ldmatrix loads three matrices", "matrices"),
    overlooks("copy_sizes", "LANG-08.2-07", "that a copy is of 12 bytes", r"it copies \d+ bytes"),
    overlooks("global_lds", "LANG-08.2-11", "that an address of the LDS is global", "the pointer is !llvm"),
]
