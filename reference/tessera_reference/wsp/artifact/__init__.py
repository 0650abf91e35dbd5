"""The native artifact of cpu_sim (sections 1.1 and 6.1): a C program written from a package, which runs it alone.

`writer.py` writes the text: the runtime of `runtime/`, then what is the package's own, a state machine a process and a
function a kernel call. `build.py` has it compiled by the system's C compiler. The program prints the executor's result.
"""
