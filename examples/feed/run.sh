#!/usr/bin/env bash
# Polls a JSON feed, and delivers each new item once.
cd "$(dirname "$0")" && source ../support/example.sh
creates 'source example-feed-items' 'webhook example-feed-inbox'

start shop node ../support/shop.mjs 0
waits_for shop 'open at'
feed=$(sed -n 's/^the shop is open at //p' "$work/shop")
receiver inbox

sluice deploy json-poller --name example-feed-items -p url="$feed" -p 'timer={"intervalSeconds":3600}'
sluice apply -f - <<EOF
apiVersion: sluice.dev/v1
kind: Webhook
metadata: { name: example-feed-inbox }
spec: { url: $url }
---
apiVersion: sluice.dev/v1
kind: Subscription
spec: { emitter: source/example-feed-items, listener: webhook/example-feed-inbox }
EOF

echo 'The first poll emits what the feed contains:'
sluice run example-feed-items
waits_for inbox '"name":"Teapot"'

echo 'The next polls emit only what is new:'
curl -sS "$feed" -d '{"name": "Kettle", "price": 29}' > "$work/products"
sluice run example-feed-items
sluice run example-feed-items
waits_for inbox '"name":"Kettle"'
curl -sS "$feed" -d '{"name": "Cup", "price": 5}' > "$work/products"
sluice run example-feed-items
waits_for inbox '"name":"Cup"'
[ "$(grep -c ^received "$work/inbox")" = 3 ] || fail 'an item was delivered twice'
