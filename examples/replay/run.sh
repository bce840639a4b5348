#!/usr/bin/env bash
# One source, two webhooks: one of them is down and catches up; a third one gets the past events by a replay.
cd "$(dirname "$0")" && source ../support/example.sh
creates 'source example-journal' 'webhook example-journal-inbox' 'webhook example-journal-archive' 'webhook example-journal-late'

webhook() {
  sluice apply -f - <<EOF
apiVersion: sluice.dev/v1
kind: Webhook
metadata: { name: $1 }
spec: { url: $2 }
---
apiVersion: sluice.dev/v1
kind: Subscription
spec: { emitter: source/example-journal, listener: webhook/$1 }
EOF
}

sluice deploy manual --name example-journal
receiver archive
archive=$url
kill $!
receiver inbox
webhook example-journal-inbox "$url"
webhook example-journal-archive "$archive"

echo 'The archive is down. The inbox receives three events:'
for entry in 1 2 3; do sluice publish example-journal --data "{\"entry\":$entry}" > "$work/emit-id"; done
waits_for inbox received 3
sluice deliveries example-journal-archive

echo 'The archive is up again, and gets what it has missed without waiting for the next attempts:'
receiver archive "$(echo "$archive" | sed 's/[^0-9]//g')"
for id in $(sluice deliveries example-journal-archive -o json | field '.map(({ id }) => id).join(" ")'); do sluice retry example-journal-archive "$id"; done
waits_for archive received 3

echo 'A replay delivers past events to a new webhook:'
receiver late
webhook example-journal-late "$url"
first=$(sluice events example-journal -o json | field '[0].id')
sluice replay example-journal example-journal-late --from "$first"
waits_for late received 3
