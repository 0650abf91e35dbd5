"""Shared parts of every command: its foreseen errors, the text that it may print, and Ctrl-C."""
