"""Pretty-prints its answers over several lines."""

import json

from speaker import converse, send

converse(lambda request: send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {}}, indent=2)))
