"""A C library as the implementation, `--impl=cabi:/path/lib.so`: loaded by a process of its own (`docs/cabi.md`)."""
