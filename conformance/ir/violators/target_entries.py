"""Verifiers of Target IR that overlook one kind of mistake, or refuse one legal entry (8.1 and 16)."""

from .verifiers_of_text import misreads, overlooks, turns_down

ENTRY = [
    overlooks("LANG-08.1-01", "unknown_attribute", "an attribute that no entry has", "there is no attribute"),
    overlooks("LANG-08.1-01", "another_level", "an entry of Tile IR", "kernel of Tile IR"),
    turns_down("LANG-08.1-01", "order", "attributes in another order", r"-> \(\), stream = "),
    turns_down("LANG-08.1-01", "second_entry", "a second entry", r"target\.kernel.*target\.kernel"),
    overlooks("LANG-16-01", "unlabelled", "that a symbol does not begin with tss_kernel_", "the symbol is"),
    turns_down("LANG-16-01", "plain_names", "digits in a mangled name", r'sym_name = "tss_kernel_\w*\d'),
    misreads("LANG-08.1-07", "turned_grid", "takes the extents backwards", r"grid=\((\d+),(\d+),(\d+)\)",
        r"grid=(\3,\2,\1)"),
    misreads("LANG-08.1-03", "narrow_scalars", "passes an i64 in 32 bits", r"\bi64\b", "i32"),
    misreads("LANG-08.1-01", "named_twice", "takes the last of two attributes", r"block=\(1,1,1\), (block=)", r"\1"),
    overlooks("LANG-08.1-02", "any_space", "that a pointer is into another memory", r"%\w+ is !llvm\.ptr<"),
    overlooks("LANG-08.1-02", "tensors", "that a parameter is a tensor", r"%\w+ is (tensor|memref|vector)<"),
    overlooks("LANG-08.1-03", "complex_behind", "that a scalar behind the first is complex", r"%n[1-9] is complex"),
]  # fmt: skip

EXTENTS_AND_SHARED = [
    overlooks("LANG-08.1-04", "no_grid", "that there is no grid", "states no grid"),
    overlooks("LANG-08.1-11", "no_block", "that there is no block", "states no block"),
    overlooks("LANG-08.1-07", "any_grid", "that a grid is not of three extents of at least 1", "its grid is"),
    overlooks("LANG-08.1-08", "any_block", "that a block is not of three extents of at least 1", "its block is"),
    overlooks("LANG-08.1-08", "many_threads", "that a block has more than 1024 threads", r"its block has \d+ threads"),
    overlooks("LANG-08.1-05", "undeclared", "that shared memory is not declared", "does not declare"),
    overlooks("LANG-08.1-05", "too_little", "that arrays take more than is declared", "its globals take"),
    overlooks("LANG-08.1-09", "negative", "that the size of shared memory is negative", "smem_bytes is"),
    overlooks("LANG-08.1-09", "too_much", "that a block of the target has less shared memory",
        r"it declares \d+ bytes"),
    turns_down("LANG-08.1-06", "no_segment", "a dynamic segment that is stated", "dynamic_smem = true"),
    overlooks("LANG-16-05", "any_alignment", "an alignment that is no power of two", "an alignment of"),
]  # fmt: skip

OTHER_VENDOR = [
    overlooks(clause, name, f"that {operation} is of the other vendor", rf"{operation}\S* is an instruction of")
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

STREAMS_AND_FORMS = [
    overlooks("LANG-08.1-10", "numbered_streams", "that a stream is no name", "stream is not"),
    overlooks("LANG-08-01", "other_target", "that a kernel is made for another target", "is made for"),
    overlooks("LANG-08-01", "other_level", "operations of other levels", "operation"),
    overlooks("LANG-08.2-05", "mma_shapes", "that there is no mma.sync of a shape", "there is no mma"),
    overlooks("LANG-08.2-05", "shares", "that a lane holds another share", r"[abc] is vector"),
    overlooks("LANG-08.2-10", "generations", "that an mfma is of another generation", r"rocdl\.mfma\S* on gfx"),
    overlooks("LANG-08.2-06", "matrices", "that ldmatrix loads three matrices", "matrices"),
    overlooks("LANG-08.2-07", "copy_sizes", "that a copy is of 12 bytes", r"it copies \d+ bytes"),
    overlooks("LANG-08.2-11", "global_lds", "that an address of the LDS is global", "the pointer is !llvm"),
]  # fmt: skip
