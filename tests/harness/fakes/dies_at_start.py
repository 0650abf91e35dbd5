"""Dies before it has said hello."""

import sys

print("cannot find libacme.so.3", file=sys.stderr)
sys.exit(7)
