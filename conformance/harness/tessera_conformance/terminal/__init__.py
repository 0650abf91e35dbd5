"""What every command shares: its foreseen errors, the text that it may print, and Ctrl-C."""
