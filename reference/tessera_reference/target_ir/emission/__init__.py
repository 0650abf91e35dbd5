"""From kernels at the Target level to LLVM IR, PTX, AMDGCN and native code (LANG-08-02, LANG-08-03)."""
