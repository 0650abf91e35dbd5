"""pto_runtime_a2a3sim: a package on a simulated host runtime, AICPU scheduler and AICore workers (section 6.2)."""
