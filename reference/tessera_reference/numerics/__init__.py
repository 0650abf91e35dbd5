"""The arithmetic of the reference: dtypes, rounding, exact storage, fixed orders, correctly rounded functions.

Everything here follows the reference arithmetic. It uses only operations that IEEE 754 defines exactly, in a defined
order: the same operands give the same bits on every machine.
"""
