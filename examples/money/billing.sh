#!/bin/sh
# An account pays for the calls of a flow: charged before, settled after; without funds the run waits or fails.
# needs: windlass serve, windlass worker --demo
# expect: 82 left
set -eu

account=billing-$$
windlass flow apply "$(dirname "$0")/speech.yaml" --name money/speech --quiet
windlass account open "$account" --name 'Acme Ltd' -o table
windlass account deposit "$account" 150 --key invoice-1 -o table
# Two for a second, ten seconds at least; the result says how many it were.
windlass price set sum 2 --units '$params.seconds' --actual '$result' --min 10 -o table

# 120 are charged; 42 seconds were needed, so that 36 come back.
windlass run start money/speech --account "$account" --wait --timeout 30s --quiet
# 66 are not enough for another one: its node fails, and nothing is charged.
windlass run start money/speech --account "$account" --wait --timeout 30s -o table || echo "no money, no speech"
# This one waits until there is enough.
run=$(windlass run start money/speech --account "$account" --on-short-balance wait --quiet)
windlass run why "$run" -o table
windlass account deposit "$account" 100 --key invoice-2 -o table
windlass run wait "$run" --timeout 30s --quiet

windlass account ledger "$account" --order oldest -o table
test "$(windlass account ledger "$account" --quiet | wc -l)" -eq 6
windlass price delete sum --quiet
windlass doctor --quiet
echo "$(windlass account show "$account" -o json | sed -n 's/.*"balance": *\([0-9]*\).*/\1/p') left"
