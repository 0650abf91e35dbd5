"""The agreements between programs, modules and the runtime: status codes, policies, descriptors, buffers, fatbins."""
