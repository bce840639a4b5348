#!/usr/bin/env bash
# Makes an account what YAML files describe, and follows the events of a source on this machine.
cd "$(dirname "$0")" && source ../support/example.sh
creates 'source example-payments' 'webhook example-failed-payments'

receiver alerts
export STRIPE_SECRET='whsec_of_stripe' ALERTS_URL=$url
echo 'The first apply creates everything, the second one changes nothing:'
sluice apply --set example-payments -f manifests
sluice apply --set example-payments -f manifests > "$work/second"
grep -q created "$work/second" && fail "the second apply created something: $(cat "$work/second")"

echo 'diff shows what a changed file would change:'
mkdir "$work/changed"
cp manifests/source.yaml "$work/changed"
sed 's/only failed charges/for accounting/' manifests/alert.yaml > "$work/changed/alert.yaml"
sluice diff --set example-payments -f "$work/changed" && fail 'diff found no difference' || true

echo 'listen posts the events of one type to this machine, signed:'
export SLUICE_WEBHOOK_SECRET=whsec_c2x1aWNlLWV4YW1wbGUtc2VjcmV0
receiver local 0 "$SLUICE_WEBHOOK_SECRET"
start listen node "$root/scripts/sluice.mjs" listen "$url" --source example-payments --stream charge.failed
waits_for listen ready
export SLUICE_FIXTURE_SECRET=$STRIPE_SECRET
sluice trigger example-payments --fixture stripe.payment_intent.succeeded
sluice trigger example-payments --fixture stripe.charge.failed
waits_for local '"type":"charge.failed"'
waits_for alerts '"type":"charge.failed"'
[ "$(grep -c ^received "$work/local")" = 1 ] || fail 'listen posted events of another type'

echo 'Without alert.yaml, --prune deletes what it described, and nothing of other sets:'
rm "$work/changed/alert.yaml"
sluice apply --set example-payments -f "$work/changed" --prune --yes
sluice get webhook example-failed-payments 2> /dev/null && fail 'the webhook still exists' || true
