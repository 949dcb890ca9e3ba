#!/bin/sh
# The demonstration worker fails the first attempt of an odd priority: this one is retried after a delay.
# needs: windlass serve, windlass worker --demo
# expect: two attempts
set -eu

job=$(windlass job create flaky --priority 3 --retries 2 --backoff-base 200ms --no-jitter --quiet)
windlass job wait "$job" --timeout 30s --quiet
windlass job attempts "$job" -o table
test "$(windlass job attempts "$job" --quiet | wc -l)" -eq 2
echo "two attempts"
