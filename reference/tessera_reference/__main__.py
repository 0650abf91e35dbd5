"""`python -m tessera_reference`: the command line."""

import sys

from .cli import main

sys.exit(main())
