"""`python -m tessera_conformance`."""

import sys

from tessera_conformance.cli import main

if __name__ == "__main__":
    sys.exit(main())
