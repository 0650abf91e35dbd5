"""The command `smoke`: small questions that follow from the claims of an implementation, and their answers."""
