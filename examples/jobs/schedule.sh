#!/bin/sh
# A schedule of a job: made from a file, looked at, triggered now, changed, deleted.
# needs: windlass serve, windlass worker --demo
# expect: completed
set -eu
cd "$(dirname "$0")"

windlass schedule preview '30 7 * * 1-5' --tz Europe/Berlin --count 3 -o table
schedule=$(windlass schedule create -f report.schedule.json --quiet)
windlass schedule show "$schedule" -o table
job=$(windlass schedule trigger "$schedule" --quiet)
windlass job wait "$job" --timeout 30s -o table
windlass schedule edit "$schedule" --cron '0 8 * * 1-5' --priority 6 --quiet
windlass schedule disable "$schedule" --quiet
windlass schedule delete "$schedule" --quiet
echo completed
