"""libtessera: the reference as a shared library with the C interface of `abi/tessera.h` (runtime spec 4, 18).

`building` makes the library, its headers and its files for pkg-config and CMake. The library holds `library.c`, which
starts a Python interpreter and guards it, and a C function for each declaration of the headers (`c_source`). The
function calls the method of its name in `functions` or, for extensions, `extensions`. It leaves everything else to
`runtime` and `adapter`. A library without Python is left out.
"""
