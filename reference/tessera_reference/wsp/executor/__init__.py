"""Executes a package on cpu_sim: one event loop over integer time; it imports nothing that builds programs.

`run.py` runs it. At each instant, in this order and until nothing moves: kernels of tasks that end, by task number;
tokens and closes that become visible, by channel; processes whose kernel ends; each process that can go on, by index,
until it blocks or its time must pass; idle workers, by index, start the first task that is ready.
"""
