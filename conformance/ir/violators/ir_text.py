"""Verifiers of Graph IR that overlook one kind of mistake, or refuse one legal form (sections 1, 5 and 13.1)."""

from dataclasses import replace

from tessera_conformance.adapter import Refusal
from tessera_reference.ir.verifier import looser_calls

from .changes import answers, around, instead
from .verifiers_of_text import misreads, overlooks, turns_down


def tells_worse(name, clause, description, **fields):
    """Return a violation whose diagnostics of Graph IR lack some fields."""

    def verify_ir(usual, self, **request):
        try:
            return usual(self, **request)
        except Refusal as refusal:
            outcome = refusal.outcome
            diagnostics = [replace(entry, **fields) for entry in outcome.diagnostics]
            raise Refusal(outcome.code, outcome.phase, outcome.message, diagnostics) from None

    return answers(name, clause, description, "language_verify_ir", verify_ir)


STRUCTURE = [
    overlooks("too_early", "LANG-05-01", "that a value is used before its definition", "used before it is defined"),
    overlooks("unknown_values", "LANG-05-01", "that a value is defined nowhere", "is not defined"),
    overlooks("twice", "LANG-01-03", "that a value is defined twice", "%.* is defined twice"),
    overlooks("leaks", "LANG-05-01", "that a value leaves its region", "in a region that has ended"),
    overlooks("endless_blocks", "LANG-01-06", "that a block has no terminator", "has no terminator"),
    overlooks("dead_ends", "LANG-01-06", "what stands behind a terminator", "follows the end of its block"),
    overlooks("results_of_terminators", "LANG-01-06", "that a terminator has results", "has operands only"),
    turns_down("no_regions", "LANG-01-06", "operations with regions", r'graph\.(if|for|while)"'),
    overlooks("yields", "LANG-01-06", "that regions yield other values than result", "yield"),
]  # fmt: skip

NAMES = [
    overlooks("operand_types", "LANG-11-01", "that an operand is stated to have another type", r"%\w+ is \S+, not"),
    overlooks("result_types", "LANG-11-01", "that a result is stated to have another type", "the result is"),
    overlooks("counts", "LANG-11-01", "that operands or results are too many", r"\d+ (operand|result)s?\b"),
    overlooks("returns", "LANG-01-03", "that a function returns other values than it says", "its signature has"),
    overlooks("unknown_operations", "LANG-05.2-03", "that an operation is unknown", "unknown operation"),
    overlooks("second_values", "LANG-01-07", "that an attribute has two values", "is given twice"),
    overlooks("unknown_attributes", "LANG-01-07", "that an attribute is unknown", "there is no attribute"),
    overlooks("kinds", "LANG-01-07", "that an attribute is no integer", "is not an integer"),
    overlooks("inner_dimensions", "LANG-05.4-01", "that inner dimensions differ", "inner dimensions differ"),
    overlooks("axis", "LANG-05.4-02", "that the axis of a softmax is out of range", "axis .* is out of range"),
    overlooks("axes", "LANG-05.4-04", "that a mesh has no such axis", "has no axis"),
    overlooks("meshes", "LANG-05.4-04", "that a module has no mesh", "the module declares none"),
    overlooks("operators", "LANG-05.4-04", "that a collective computes nothing", r"op is|attribute op is missing"),
    overlooks("symbols", "LANG-05-03", "that a symbol is defined twice", "@.* is defined twice"),
    overlooks("module_names", "LANG-05-03", "that two modules have one name", "@.* is declared twice"),
    overlooks("strange_definitions", "LANG-05-03", "that something else stands in a module", "outside functions"),
    overlooks("callees", "LANG-05-03", "that a callee is none of the module's functions", "unknown function"),
    overlooks("recursion", "LANG-05-03", "that a function calls itself", "recursion"),
]  # fmt: skip

FORMS = [
    turns_down("quotes_only", "LANG-13.1-04", "operations without quotes", r"= tessera"),
    turns_down("no_comments", "LANG-13.1-04", "comments", r"//"),
    turns_down("bare_results", "LANG-13.1-04", "one result type in parentheses", r"-> \(tensor<2x2xfp32>\)\n"),
    turns_down("no_properties", "LANG-13.1-04", "attributes in angle brackets", r"<\{"),
    turns_down("bare_attributes", "LANG-13.1-04", "names of attributes in quotes", r'\{"axis"'),
    turns_down("numbers_without_types", "LANG-13.1-04", "types behind numbers", r"= -?\d+ : i\d"),
    turns_down("arguments_nowhere", "LANG-13.1-04", "locations of arguments", r"xfp32> loc\(\S+\)\)"),
    turns_down("lines_from_one", "LANG-13.1-04", "a location in line 0", ":0:0"),
    turns_down("capital_digits", "LANG-13.1-04", "escapes with small letters", r"\\6f"),
    turns_down("a_name_each", "LANG-13.1-04", "one name for several results", r"%\w:\d"),
    misreads("first_of_several", "LANG-01-03", "takes a name for its first result only", r"#\d", "#0"),
    misreads("second_of_wrt", "LANG-05.2-06", "turns two operands of wrt", r"%wrt\((%\w+), (%\w+)\)", r"%wrt(\2, \1)"),
    overlooks("bits_of_floats", "LANG-13.1-04", "that a float has too many bits", r"is no b?f\d\d of (16|32) bits"),
    overlooks("anything_goes", "LANG-13.1-04", "that a text is malformed", "expected|unexpected|does not end"),
]

CONSTANTS = [
    misreads("infinite_bits", "LANG-05.2-01", "reads infinity as the largest number", "FF0000000000000",
        "FEFFFFFFFFFFFFF"),
    misreads("sign_of_bits", "LANG-05.2-01", "loses the sign of bits of bf16", "0xFF80 : bf16", "0x7F80 : bf16"),
    misreads("infinity", "LANG-05.2-01", "takes a float beyond all doubles for a large one", r"e(309|400)\b", "e0"),
    misreads("constants_of_ones", "LANG-05.2-01", "fills a constant of no value with ones", r"const_tensor  :",
        "const_tensor {value = 1} :"),
]  # fmt: skip


def without_profiles_of_calls(module, order):
    functions = {}
    for name, function in module.functions.items():
        instructions = tuple(replace(instruction, attributes={}) for instruction in function.body.instructions)
        functions[name] = replace(function, body=replace(function.body, instructions=instructions))
    return looser_calls(replace(module, functions=functions), order)


PROFILES = [
    overlooks("narrow_accumulators", "LANG-11-13", "that an accumulator is narrower than a profile allows", "narrower"),
    instead("accumulators_of_functions", "LANG-11-13",
        "looks at the profile of the function where an operation in a text has one of its own",
        "ir.text_reader.FunctionReader._made",
        around(lambda usual, self, *parts: usual(self, *parts[:-1], self.profile))),
    instead("calls_of_functions", "LANG-11-16",
        "looks at the profile of the function where a call in a text has one of its own", "ir.verifier.looser_calls",
        without_profiles_of_calls),
]  # fmt: skip

WORDS = [
    tells_worse("nowhere", "LANG-12-01", "does not say where a mistake in IR is", line=None, column=None),
    tells_worse("no_shapes", "LANG-12-02", "names no shapes in IR", operands=(), message="wrong", requirement="none"),
    tells_worse("no_remedy", "LANG-12-03", "suggests nothing for IR", remedy=None, requirement=None),
]
