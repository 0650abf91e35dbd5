"""The native artifact of cpu_sim (sections 1.1 and 6.1): a C program written from a package, which runs it alone.

`writer.py` writes the package as tables, `runtime/` is what executes them, and `build.py` has both compiled by the
system's C compiler. The program prints the state in which a run ends; `deadlock.py` explains it.
"""
