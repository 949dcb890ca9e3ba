#!/bin/sh
# One job: created from a file, awaited, shown. A second one differs by flags.
# needs: windlass serve, windlass worker --demo
# expect: completed
set -eu
cd "$(dirname "$0")"

windlass job create -f thumbnail.job.json --wait --timeout 30s -o table
job=$(windlass job create -f thumbnail.job.json --payload '{"file": "dog.png"}' --priority 2 --quiet)
windlass job wait "$job" --timeout 30s --quiet
windlass job attempts "$job" -o table
echo completed
