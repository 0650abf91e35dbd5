"""Headers of vendors that say the same in other words are read alike, and those that say something else are not."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.abi.kit.c_header import Linkage, UnreadableHeader, linkages, read_header

HEADER = """
#ifndef VENDOR_H
#define VENDOR_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct tessMesh* tessMesh_t;
typedef enum { TESS_OK = 0, TESS_BAD, TESS_WORSE = TESS_BAD << 3, TESS_WORST } tessStatus_t;
typedef struct { int grid[3]; size_t shmemBytes; unsigned flags; } tessLaunchConfig;
#define TESS_FLAG (1u << 2)
tessStatus_t tessMalloc(tessMesh_t mesh, size_t bytes, void** devPtr);
#ifdef __cplusplus
}
#endif
#endif
"""

SAME = {
    "unnamed": ("tessMesh_t mesh, size_t bytes, void** devPtr", "tessMesh_t, size_t, void**"),
    "array": ("void** devPtr", "void* devPtr[]"),
    "const-parameter": ("size_t bytes", "const size_t bytes"),
    "const-pointer": ("void** devPtr", "void** const devPtr"),
    "tag": ("tessMesh_t mesh", "struct tessMesh* mesh"),
    "comments": ("size_t bytes", "size_t /* how many */ bytes"),
    "restrict": ("void** devPtr", "void** __restrict devPtr"),
    "attribute": ("tessStatus_t tessMalloc", '__attribute__((visibility("default"))) tessStatus_t tessMalloc'),
    "extern": ("tessStatus_t tessMalloc", "extern tessStatus_t tessMalloc"),
    "typedef": ("tessStatus_t tessMalloc(tessMesh_t", "typedef tessMesh_t own;\ntessStatus_t tessMalloc(own"),
    "continued": ("tessMalloc(tessMesh_t mesh,", "tessMalloc( \\\n tessMesh_t mesh,"),
    "macro": ("tessStatus_t tessMalloc", "#define API extern\nAPI tessStatus_t tessMalloc"),
    "exported": (
        "tessStatus_t tessMalloc",
        "#if defined(_WIN32) && !defined(STATIC)\n#define API __declspec(dllexport)\n#else\n#define API\n#endif\n"
        "API tessStatus_t tessMalloc",
    ),
    "windows": ("\n", "\r\n"),
}

OTHER = {
    "less": ("tessMesh_t mesh, size_t bytes, void** devPtr", "tessMesh_t mesh, size_t bytes"),
    "order": ("tessMesh_t mesh, size_t bytes,", "size_t bytes, tessMesh_t mesh,"),
    "unsigned": ("size_t bytes", "unsigned long bytes"),
    "pointer": ("void** devPtr", "void* devPtr"),
    "const": ("void** devPtr", "const void** devPtr"),
    "value": ("tessMesh_t mesh", "struct tessMesh mesh"),
    "variadic": ("void** devPtr", "void** devPtr, ..."),
    "none": ("tessMesh_t mesh, size_t bytes, void** devPtr", "void"),
}


def changed(old: str, new: str) -> str:
    """The header with a text replaced."""
    assert old in HEADER
    return HEADER.replace(old, new)


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME)
def test_the_same_prototype_in_other_words(old: str, new: str) -> None:
    header = read_header(changed(old, new))
    assert header.prototype("tessMalloc") == header.expected("tessStatus_t tessMalloc(tessMesh_t, size_t, void**);")


@pytest.mark.parametrize(("old", "new"), OTHER.values(), ids=OTHER)
def test_another_prototype(old: str, new: str) -> None:
    header = read_header(changed(old, new))
    assert header.prototype("tessMalloc") != header.expected("tessStatus_t tessMalloc(tessMesh_t, size_t, void**);")


def test_what_is_expected_may_be_undeclared() -> None:
    header = read_header(HEADER)
    assert header.expected("tessStatus_t f(tessEvent_t);").parameters == ("tessEvent_t",)
    assert header.prototype("tessFree") is None


def test_enumerators_are_counted() -> None:
    header = read_header(HEADER)
    assert header.enumerators("tessStatus_t") == (("TESS_OK", 0), ("TESS_BAD", 1), ("TESS_WORSE", 8), ("TESS_WORST", 9))
    assert header.enumerators("tessMesh_t") is None
    assert header.enumerators("tessUnknown") is None


@pytest.mark.parametrize(
    "text",
    [
        "enum tessStatus_t { TESS_OK }; typedef enum tessStatus_t tessStatus_t;",
        "typedef enum tessStatus_t tessStatus_t; enum tessStatus_t { TESS_OK };",
        "typedef enum other { TESS_OK } other_t; typedef other_t tessStatus_t;",
    ],
    ids=["before", "after", "renamed"],
)
def test_an_enumeration_by_its_tag(text: str) -> None:
    assert read_header(text).enumerators("tessStatus_t") == (("TESS_OK", 0),)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("#define F (1u << 2)", 4),
        ("#define F 0x10UL", 16),
        ("#define F 010", 8),
        ("#define G 3\n#define F (G | 4)", 7),
        ("#define G 3\n#define F G", 3),
        ("enum { E = 5 };\n#define F (E + 1)", 6),
        ("enum { F = ~0 & 0xff };", 255),
        ("enum { F = 1 ? 2 : 3 };", 2),
        ("#define F(x) x", None),
        ("#define F", None),
        ('#define F "text"', None),
        ("#define F F", None),
        ("#define F 1\n#undef F", None),
    ],
)
def test_the_value_of_a_constant(text: str, value: int | None) -> None:
    assert read_header(text + "\n").value("F") == value


def test_members_and_their_types() -> None:
    header = read_header(HEADER)
    expected = (("grid", "int[3]"), ("shmemBytes", "size_t"), ("flags", "unsigned int"))
    assert header.members("tessLaunchConfig") == expected
    assert header.members("tessMesh_t") is None
    tagged = "struct s { int a, b; const char* c; long int d; };\ntypedef struct s t;"
    assert read_header(tagged).members("t") == (("a", "int"), ("b", "int"), ("c", "const char*"), ("d", "long"))


@pytest.mark.parametrize(
    ("text", "is_opaque"),
    [
        ("typedef struct s* h;", True),
        ("typedef struct s s; typedef s* h;", True),
        ("typedef struct s* g; typedef g h;", True),
        ("typedef struct s { int x; }* h;", False),
        ("struct s { int x; }; typedef struct s* h;", False),
        ("typedef struct s* h; struct s { int x; };", False),
        ("typedef struct s h;", False),
        ("typedef void* h;", False),
        ("typedef unsigned long h;", False),
        ("", False),
    ],
)
def test_opaque_handles(text: str, is_opaque: bool) -> None:
    assert read_header(text).is_opaque_handle("h") is is_opaque


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("#ifdef __cplusplus", False),
        ("#ifndef __cplusplus", True),
        ("#if 0", False),
        ("#if defined(A)", True),
        ("#if defined A && A == 2", True),
        ("#if defined(B) || A > 2", False),
        ("#if !defined(B)", True),
        ("#if __STDC_VERSION__ >= 201112L", True),
        ("#if 0\n#elif A", True),
        ("#if A\n#elif A", False),
        ("#if 0\n#else", True),
        ("#if 1\n#else", False),
        ("#if 0\n#if 1\n#elif 1\n#endif\n#elif B", False),
    ],
)
def test_conditions(condition: str, holds: bool) -> None:
    header = read_header(f"#define A 2\n{condition}\nint f(void);\n#endif\n")
    assert (header.prototype("f") is not None) == holds


def test_an_inner_condition_does_not_bring_back_an_outer_one() -> None:
    header = read_header("#if 0\n#if 1\nint f(void);\n#else\nint g(void);\n#endif\n#define H 1\n#endif\n")
    assert not header.functions
    assert header.value("H") is None


def test_conditions_that_are_left_out_are_not_evaluated() -> None:
    """Lines behind a branch that was taken, or inside one that is not, need not make sense."""
    assert "f" in read_header("#if 1\nint f(void);\n#elif (\n#endif\n").functions
    assert "f" in read_header("#if 0\n#if (\n#endif\n#endif\nint f(void);\n").functions


def test_parameters_that_are_none_and_any() -> None:
    header = read_header("int f(void); int g(int, ...); typedef char* text; typedef struct { const text a; } s;")
    assert header.prototype("f").parameters == ()
    assert header.prototype("g").parameters == ("int", "...")
    assert header.members("s") == (("a", "char* const"),)


@pytest.mark.parametrize(
    "text",
    [
        "int f(",
        "tessStatus_t f(void);",
        "#if 1\nint f(void);",
        "#endif",
        "#else\n#endif",
        "#if (\n#endif",
        "typedef t t;\nint f(t);",
        "enum { A = f() };",
        "\x00",
    ],
)
def test_what_is_no_header(text: str) -> None:
    with pytest.raises(UnreadableHeader):
        _ = read_header(text).constants


def test_what_the_preprocessor_leaves_is_read() -> None:
    """Line markers, typedefs of the system's headers, extensions of the compiler."""
    text = '# 1 "x.h" 1 3\ntypedef unsigned long size_t;\n__extension__ typedef long own;\n' + HEADER.replace(
        "#include <stddef.h>", ""
    )
    header = read_header(text)
    assert header.prototype("tessMalloc") == header.expected("tessStatus_t tessMalloc(tessMesh_t, size_t, void**);")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n", "\r\n"),
        ("tessStatus_t tessMalloc", '__attribute__((visibility("default"))) tessStatus_t tessMalloc'),
        ("tessStatus_t tessMalloc", "extern tessStatus_t __cdecl tessMalloc"),
        ('#ifdef __cplusplus\nextern "C" {\n#endif', ""),
        (
            '#ifdef __cplusplus\nextern "C" {\n#endif',
            '#ifdef __cplusplus\n#define API extern "C"\n#else\n#define API\n#endif',
        ),
    ],
    ids=["windows", "attribute", "cdecl", "only C", "each"],
)
def test_a_function_of_c(old: str, new: str) -> None:
    text = changed(old, new)
    if "define API" in new:
        text = text.replace("tessStatus_t tessMalloc", "API tessStatus_t tessMalloc")
    text = (
        text.replace("#ifdef __cplusplus\n}\n#endif", "")
        if 'extern "C" {' not in new and old.startswith("#if")
        else text
    )
    assert linkages(text)["tessMalloc"] == Linkage(is_c=True)


@pytest.mark.parametrize(
    ("old", "new", "linkage"),
    [
        ('extern "C" {', 'extern "C++" {', Linkage(False)),
        ("tessStatus_t tessMalloc", "tessStatus_t __stdcall tessMalloc", Linkage(True, ("__stdcall",))),
        ("tessStatus_t tessMalloc", "__attribute__((ms_abi)) tessStatus_t tessMalloc", Linkage(True, ("ms_abi",))),
        (
            "tessStatus_t tessMalloc",
            "#define CC __vectorcall\ntessStatus_t CC tessMalloc",
            Linkage(True, ("__vectorcall",)),
        ),
        ("tessStatus_t tessMalloc", "#ifdef __cplusplus\n}\n#endif\ntessStatus_t tessMalloc", Linkage(False)),
    ],
    ids=["mangled", "stdcall", "ms_abi", "macro", "behind"],
)
def test_a_function_that_is_called_otherwise(old: str, new: str, linkage: Linkage) -> None:
    assert linkages(changed(old, new))["tessMalloc"] == linkage


def test_a_pointer_to_a_function_is_none() -> None:
    text = "typedef struct { tessStatus_t (*tessInit)(void); } tessApi; tessApi* tessGet(void);"
    assert set(linkages(text)) == {"tessGet"}
