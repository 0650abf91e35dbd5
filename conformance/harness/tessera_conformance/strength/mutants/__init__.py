"""Mutants that no author of a case chose: small changes made by rule in the code of the implementation itself.

A violator breaks a clause that somebody thought of; a mutant changes a place that a seed chose. `strength --mutants N`
samples places of the functions of the control's package, changes each in a process of its own, and runs the cases that
execute it. What survives is a weak case, or stands in the list of equivalent mutants with the reason.
"""
