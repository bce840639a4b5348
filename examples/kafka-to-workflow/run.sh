#!/usr/bin/env bash
# A Kafka producer emits orders, a workflow outside Sluice makes invoices of them, and a webhook receives the invoices.
cd "$(dirname "$0")" && source ../support/example.sh
creates 'source example-kafka-orders' 'webhook example-invoices'

sluice deploy manual --name example-kafka-orders
source_id=$(sluice get source example-kafka-orders -o json | field .id)
workflow_id=p_example$(date +%s)
start workflow node workflow.mjs "$workflow_id" "$(sluice whoami -o json | field .id)"
waits_for workflow registered

echo 'The source triggers the workflow, and the workflow a webhook:'
receiver inbox
sluice apply -f - <<EOF
apiVersion: sluice.dev/v1
kind: Webhook
metadata: { name: example-invoices }
spec: { url: $url }
EOF
sluice subscribe "$source_id" "$workflow_id"
sluice subscribe "$workflow_id" example-invoices

node producer.mjs "$source_id"
waits_for workflow 'of /shop' 3
waits_for inbox '"invoice":' 3
