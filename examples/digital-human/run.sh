#!/bin/sh
# A digital human: motion and speech side by side, then the lips; each by a provider that takes seconds and sometimes fails.
# needs: windlass serve, python3
# expect: refused, and not tried again
set -eu
cd "$(dirname "$0")"

# The provider and the worker end with this script.
place=$(mktemp -d)
trap 'kill $provider $worker 2>/dev/null || true; rm -r "$place"' EXIT
provider=; worker=
python3 provider.py "$place/address" & provider=$!
until [ -s "$place/address" ]; do sleep 0.05; done
PROVIDER=$(cat "$place/address") python3 worker.py & worker=$!

windlass flow apply --name digital-human ../dag/digital-human.yaml --quiet
run=$(windlass run start digital-human -p 'text="good morning"' --quiet)
windlass run watch "$run" --timeout 120s
windlass run attempts "$run" -o table

# A request that the provider refuses is not retried, and the flow starts nothing else.
run=$(windlass run start digital-human -p 'text="a forbidden word"' --quiet)
code=0; windlass run wait "$run" --timeout 120s -o table || code=$?
test "$code" -eq 1
test "$(windlass run attempts "$run" -o jsonl | grep -c '"node":"speech"')" -eq 1
echo "refused, and not tried again"
