#!/usr/bin/env bash
# A Kafka producer emits orders, a workflow outside Sluice makes invoices of them, and a webhook receives the invoices.
cd "$(dirname "$0")" && source ../support/example.sh
creates 'source kafka-orders' 'webhook invoices'

sluice deploy manual --name kafka-orders
source_id=$(sluice get source kafka-orders -o json | field .id)
workflow_id=p_example$(date +%s)
start workflow node workflow.mjs "$workflow_id" "$(sluice whoami -o json | field .id)"
waits_for workflow registered

echo 'The source triggers the workflow, and the workflow a webhook:'
receiver inbox
sluice apply -f - <<EOF
apiVersion: sluice.dev/v1
kind: Webhook
metadata: { name: invoices }
spec: { url: $url }
EOF
webhook_id=$(sluice get webhook invoices -o json | field .id)
subscribe() { sluice api createSubscription emitter_id="$1" listener_id="$2" > "$work/subscription" 2>&1; }
# Sluice learns of the workflow a moment after it was registered
for _ in $(seq 50); do subscribe "$source_id" "$workflow_id" && break || sleep 0.2; done
subscribe "$workflow_id" "$webhook_id"

node producer.mjs "$source_id"
waits_for workflow 'of /shop' 3
waits_for inbox '"invoice":' 3
