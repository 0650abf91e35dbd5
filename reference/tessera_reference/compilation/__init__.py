"""Compilation: from a program to a module image, and from a loaded image to executables (runtime spec 8, 10, 17).

It uses the levels of IR and the container of the ABI; devices, memory and time belong to the runtime.
"""
