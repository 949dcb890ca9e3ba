#!/bin/sh
# At most two jobs of a customer at once and ten starts a second in all, over all workers; customers take turns.
# needs: windlass serve, windlass worker --demo --queues default,limits-example
# expect: 12 completed
set -eu

windlass queue limit limits-example --concurrency 4 --rate 10/s --key-concurrency 2 --fair -o table
jobs=$(for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
    echo "{\"name\": \"sync\", \"limit_key\": \"customer-$((n % 3))\", \"payload\": {\"page\": $n}}"
done | windlass job create --batch - --queue limits-example --quiet)
for job in $jobs; do windlass job wait "$job" --timeout 60s --quiet; done
windlass queue show limits-example -o table
windlass queue limit limits-example --clear --quiet
echo "$(echo "$jobs" | wc -l | tr -d ' ') completed"
