"""The helpers that cases of the messages between host and IO_CPU share."""
