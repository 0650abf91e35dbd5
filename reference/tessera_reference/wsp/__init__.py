"""The WSP runtime: programs of channels, processes and tasks, the packages made of them, and their execution.

`builder` makes a package, `package` reads one, `run` and `native` execute one without the builder.
The model in one page is `docs/wsp.md`.
"""
