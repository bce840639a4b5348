#!/usr/bin/env bash
# Delivers the errors of a source to a webhook.
cd "$(dirname "$0")" && source ../support/example.sh
creates 'source example-moody' 'source example-alert-text' 'webhook example-alerts'

receiver chat
RECEIVER_URL=$url sluice apply -f manifests.yaml

echo 'A run that succeeds alerts nobody; one that throws does:'
sluice run example-moody --data '{}'
sluice run example-moody --data '{"fail": "the moon is full"}' && fail 'the run succeeded' || true
waits_for chat 'failed in line 6: TypeError: the moon is full'
[ "$(grep -c ^received "$work/chat")" = 1 ] || fail 'there were other alerts'
