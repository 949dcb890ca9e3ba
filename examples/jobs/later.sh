#!/bin/sh
# A job that is due in a second: delayed until then, never early.
# needs: windlass serve, windlass worker --demo
# expect: delayed, then completed
set -eu

job=$(windlass job create reminder --in 1s --payload '{"text": "tea"}' --quiet)
windlass job show "$job" -o table
windlass job list --status delayed --quiet | grep -q "$job"
windlass job wait "$job" --timeout 30s -o table
echo "delayed, then completed"
