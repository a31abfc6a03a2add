"""Serves requests of the tests: each line of the input is a JSON document, and each line of the output is
`{"result": …}` or `{"error": …}`.
"""

import json
import sys
import traceback


def serve(run):
    for line in sys.stdin:
        try:
            response = {"result": run(json.loads(line))}
        except Exception:
            response = {"error": traceback.format_exc()}
        print(json.dumps(response), flush=True)
