#!/bin/sh
# Four lines, three jobs: the last line has the deduplication key of the first, and is answered with its id.
# needs: windlass serve, windlass worker --demo
# expect: 3 jobs
set -eu
cd "$(dirname "$0")"

windlass queue pause batch-example -q
jobs=$(windlass job create --batch letters.jsonl --queue batch-example -q | sort -u)
windlass job list --queue batch-example -o table
for job in $jobs; do windlass job cancel "$job" -q; done
windlass queue resume batch-example -q
echo "$(echo "$jobs" | wc -l | tr -d ' ') jobs"
