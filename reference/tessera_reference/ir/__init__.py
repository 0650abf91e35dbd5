"""The SSA core that every IR level shares: types, operations, modules, text, verifier, diagnostics (sections 1, 5).

It knows no operation and no level; `graph` and the levels below it have their own.
"""
