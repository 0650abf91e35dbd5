"""Target IR: kernels in the LLVM, NVVM and ROCDL dialects, and what they become for real machines (sections 8, 16)."""
