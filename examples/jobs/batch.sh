#!/bin/sh
# Four lines, three jobs: the last line has the deduplication key of the first, and is answered with its id.
# needs: windlass serve, windlass worker --demo
# expect: 3 jobs
set -eu
cd "$(dirname "$0")"

windlass queue pause batch-example --quiet
jobs=$(windlass job create --batch letters.jsonl --queue batch-example --quiet | sort -u)
windlass job list --queue batch-example -o table
for job in $jobs; do windlass job cancel "$job" --quiet; done
windlass queue resume batch-example --quiet
echo "$(echo "$jobs" | wc -l | tr -d ' ') jobs"
