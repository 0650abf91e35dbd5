"""The functions of the host API, a file for each part of section 4 of the runtime specification, and extensions."""
