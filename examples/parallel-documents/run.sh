#!/bin/sh
# One document filed in three places: in branches side by side, and one step after the other.
# needs: windlass serve, python3
# expect: side by side is faster, and makes the same
set -eu
cd "$(dirname "$0")"

# The worker ends with this script.
trap 'kill $worker 2>/dev/null || true' EXIT
worker=
python3 worker.py & worker=$!

windlass flow apply --name side-by-side ../steps/parallel-documents.json --quiet
windlass flow apply --name in-a-row in-a-row.json --quiet

# Runs a flow, and prints the result of its last step and its duration in milliseconds.
play() {
    windlass run start "$1" -p id=doc-1 --wait --timeout 120s -o json | python3 -c '
import datetime, json, sys
run = json.load(sys.stdin)
at = lambda field: datetime.datetime.fromisoformat(run[field].replace("Z", "+00:00"))
took = at("ended_at") - at("created_at")
print(run["node_states"]["4"]["output"]["new_docid"], int(took.total_seconds() * 1000))'
}
play side-by-side >/dev/null # the worker is there when this is over
side=$(play side-by-side)
row=$(play in-a-row)
echo "side by side: ${side##* } ms"
echo "in a row:     ${row##* } ms"
test "${side% *}" = "${row% *}"
# Three calls after one another instead of five.
test $((${side##* } * 13)) -lt $((${row##* } * 10))
echo "side by side is faster, and makes the same"
