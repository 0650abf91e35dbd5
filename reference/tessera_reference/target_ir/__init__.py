"""Target IR: kernels in the LLVM, NVVM and ROCDL dialects, and their code for real machines (sections 8, 16)."""
