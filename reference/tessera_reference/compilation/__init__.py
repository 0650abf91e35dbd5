"""Compilation: a program becomes a module image, and a loaded image becomes what runs (runtime spec 8, 10, 17).

It uses the levels of IR and the container of the ABI; devices, memory and time are the runtime's.
"""
