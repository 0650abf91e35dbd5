"""The violators of the messages between host and IO_CPU: mutants of the reference, each of one clause."""
