#!/bin/sh
# The demonstration worker fails the first attempt of an odd priority: this one is tried again after a pause.
# needs: windlass serve, windlass worker --demo
# expect: two attempts
set -eu

job=$(windlass job create flaky --priority 3 --max-retries 3 --backoff-base 200ms --no-jitter -q)
windlass job wait "$job" --timeout 30s -q
windlass job attempts "$job" -o table
test "$(windlass job attempts "$job" -q | wc -l)" -eq 2
echo "two attempts"
