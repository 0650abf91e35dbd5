"""Verifiers of Graph IR that overlook one kind of mistake, or refuse one legal form (sections 1, 5 and 13.1)."""

from dataclasses import replace

from tessera_conformance.adapter import Refusal
from tessera_reference.ir.verifier import looser_calls

from .changes import instead, wrapped
from .verifiers_of_text import misreads, overlooks, turns_down


def tells_worse(clause, name, description, **fields):
    """Return a violation whose diagnostics of Graph IR lack some fields."""

    def verify_ir(usual, self, **request):
        try:
            return usual(self, **request)
        except Refusal as refusal:
            outcome = refusal.outcome
            diagnostics = [replace(entry, **fields) for entry in outcome.diagnostics]
            raise Refusal(outcome.code, outcome.phase, outcome.message, diagnostics) from None

    return wrapped(clause, name, description, "adapter.ReferenceAdapter.language_verify_ir", verify_ir)


STRUCTURE_AND_NAMES = [
    overlooks("LANG-05-01", "too_early", "that a value is used before its definition", "used before it is defined"),
    overlooks("LANG-05-01", "unknown_values", "that a value is defined nowhere", "is not defined"),
    overlooks("LANG-01-03", "twice", "that a value is defined twice", "%.* is defined twice"),
    overlooks("LANG-05-01", "leaks", "that a value leaves its region", "in a region that has ended"),
    overlooks("LANG-01-06", "endless_blocks", "that a block has no terminator", "has no terminator"),
    overlooks("LANG-01-06", "dead_ends", "what stands behind a terminator", "follows the end of its block"),
    overlooks("LANG-01-06", "results_of_terminators", "that a terminator has results", "has operands only"),
    turns_down("LANG-01-06", "no_regions", "operations with regions", r'graph\.(if|for|while)"'),
    overlooks("LANG-01-06", "yields", "that regions yield other values than result", "yield"),
    overlooks("LANG-11-01", "operand_types", "that an operand is stated to have another type", r"%\w+ is \S+, not"),
    overlooks("LANG-11-01", "result_types", "that a result is stated to have another type", "the result is"),
    overlooks("LANG-11-01", "counts", "that operands or results are too many", r"\d+ (operand|result)s?\b"),
    overlooks("LANG-01-03", "returns", "that a function returns other values than it says", "its signature has"),
    overlooks("LANG-05.2-03", "unknown_operations", "that an operation is unknown", "unknown operation"),
    overlooks("LANG-01-07", "second_values", "that an attribute has two values", "is given twice"),
    overlooks("LANG-01-07", "unknown_attributes", "that an attribute is unknown", "there is no attribute"),
    overlooks("LANG-01-07", "kinds", "that an attribute is no integer", "is not an integer"),
    overlooks("LANG-05.4-01", "inner_dimensions", "that inner dimensions differ", "inner dimensions differ"),
    overlooks("LANG-05.4-02", "axis", "that the axis of a softmax is out of range", "axis .* is out of range"),
    overlooks("LANG-05.4-04", "axes", "that a mesh has no such axis", "has no axis"),
    overlooks("LANG-05.4-04", "meshes", "that a module has no mesh", "the module declares none"),
    overlooks("LANG-05.4-04", "operators", "that a collective computes nothing", r"op is|attribute op is missing"),
    overlooks("LANG-05-03", "symbols", "that a symbol is defined twice", "@.* is defined twice"),
    overlooks("LANG-05-03", "module_names", "that two modules have one name", "@.* is declared twice"),
    overlooks("LANG-05-03", "strange_definitions", "that something else stands in a module", "outside functions"),
    overlooks("LANG-05-03", "callees", "that a callee is none of the module's functions", "unknown function"),
    overlooks("LANG-05-03", "recursion", "that a function calls itself", "recursion"),
]  # fmt: skip

FORMS = [
    turns_down("LANG-13.1-04", "quotes_only", "operations without quotes", r"= tessera"),
    turns_down("LANG-13.1-04", "no_comments", "comments", r"//"),
    turns_down("LANG-13.1-04", "bare_results", "one result type in parentheses", r"-> \(tensor<2x2xfp32>\)\n"),
    turns_down("LANG-13.1-04", "no_properties", "attributes in angle brackets", r"<\{"),
    turns_down("LANG-13.1-04", "bare_attributes", "names of attributes in quotes", r'\{"axis"'),
    turns_down("LANG-13.1-04", "numbers_without_types", "types behind numbers", r"= -?\d+ : i\d"),
    turns_down("LANG-13.1-04", "arguments_nowhere", "locations of arguments", r"xfp32> loc\(\S+\)\)"),
    turns_down("LANG-13.1-04", "lines_from_one", "a location in line 0", ":0:0"),
    turns_down("LANG-13.1-04", "capital_digits", "escapes with small letters", r"\\6f"),
    turns_down("LANG-13.1-04", "a_name_each", "one name for several results", r"%\w:\d"),
    misreads("LANG-01-03", "first_of_several", "takes a name for its first result only", r"#\d", "#0"),
    misreads("LANG-05.2-06", "second_of_wrt", "turns two operands of wrt", r"%wrt\((%\w+), (%\w+)\)", r"%wrt(\2, \1)"),
    overlooks("LANG-13.1-04", "bits_of_floats", "that a float has too many bits", r"is no b?f\d\d of (16|32) bits"),
    overlooks("LANG-13.1-04", "anything_goes", "that a text is malformed", "expected|unexpected|does not end"),
]


def without_profiles_of_calls(module, order):
    functions = {}
    for name, function in module.functions.items():
        instructions = tuple(replace(instruction, attributes={}) for instruction in function.body.instructions)
        functions[name] = replace(function, body=replace(function.body, instructions=instructions))
    return looser_calls(replace(module, functions=functions), order)


OTHERS = [
    misreads("LANG-05.2-01", "infinite_bits", "reads infinity as the largest number", "FF0000000000000",
        "FEFFFFFFFFFFFFF"),
    misreads("LANG-05.2-01", "sign_of_bits", "loses the sign of bits of bf16", "0xFF80 : bf16", "0x7F80 : bf16"),
    misreads("LANG-05.2-01", "infinity", "takes a float beyond all doubles for a large one", r"e(309|400)\b", "e0"),
    misreads("LANG-05.2-01", "constants_of_ones", "fills a constant of no value with ones", r"const_tensor  :",
        "const_tensor {value = 1} :"),
    overlooks("LANG-11-13", "narrow_accumulators", "that an accumulator is narrower than a profile allows", "narrower"),
    wrapped("LANG-11-13", "accumulators_of_functions",
        "looks at the profile of the function where an operation in a text has one of its own",
        "ir.text_reader.FunctionReader._made", lambda usual, self, *parts: usual(self, *parts[:-1], self.profile)),
    instead("LANG-11-16", "calls_of_functions",
        "looks at the profile of the function where a call in a text has one of its own", "ir.verifier.looser_calls",
        without_profiles_of_calls),
    tells_worse("LANG-12-01", "nowhere", "does not say where a mistake in IR is", line=None, column=None),
    tells_worse("LANG-12-02", "no_shapes", "names no shapes in IR", operands=(), message="wrong", requirement="none"),
    tells_worse("LANG-12-03", "no_remedy", "suggests nothing for IR", remedy=None, requirement=None),
]  # fmt: skip
