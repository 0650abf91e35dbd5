"""The WSP runtime: programs of channels, processes and tasks, the packages made of them, and their execution.

`builder` and `compiler` make a package, `reading` reads one, `executor` runs one and imports neither of the first two.
The model in one page is `docs/wsp.md`.
"""
