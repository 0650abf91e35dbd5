"""Reports: one JSON Lines file is the truth, and everything people look at is made from it alone."""
