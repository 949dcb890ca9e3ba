#!/bin/sh
# A job without retries that fails becomes a dead letter. Replayed with an even priority, it succeeds.
# needs: windlass serve, windlass worker --demo
# expect: failed, replayed, completed
set -eu

job=$(windlass job create charge --priority 1 --retries 0 --payload '{"order": 7}' --quiet)
if windlass job wait "$job" --timeout 30s --quiet; then echo "it should have failed" >&2; exit 1; fi
windlass dlq groups default -o table
windlass dlq show "$job" -o table
windlass dlq replay default "$job" --priority 2 --patch '{"checked": true}' -o table
windlass job wait "$job" --timeout 30s -o table
echo "failed, replayed, completed"
