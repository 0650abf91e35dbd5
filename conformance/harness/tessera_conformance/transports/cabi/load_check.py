"""Loads a library and says which of some symbols it exports; a script that needs only the standard library.

    python load_check.py LIBRARY SYMBOL...

The answer is one line of JSON on standard output, which the library cannot write to: `exported`, or `problem`.
"""

import ctypes
import json
import os
import sys


def main() -> None:
    """Load the library, look up the symbols, and print the answer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        library = ctypes.CDLL(sys.argv[1])
        answer: object = {"exported": [name for name in sys.argv[2:] if hasattr(library, name)]}
    except OSError as error:
        answer = {"problem": str(error)}
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
