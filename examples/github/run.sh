#!/usr/bin/env bash
# Sends signed samples of GitHub's webhooks through a receiver and a filter to a webhook.
cd "$(dirname "$0")" && source ../support/example.sh
creates 'source example-github-repo' 'source example-pushes-to-main' 'webhook example-pushes'

receiver chat
export GITHUB_SECRET='the secret that GitHub signs with' RECEIVER_URL=$url
sluice apply -f manifests.yaml

echo 'A request that GitHub has not signed is refused:'
SLUICE_FIXTURE_SECRET=wrong sluice trigger example-github-repo --fixture github.push && fail 'it was accepted' || true

echo 'An issue is received, but the filter drops it. A push to main reaches the webhook:'
export SLUICE_FIXTURE_SECRET=$GITHUB_SECRET
sluice trigger example-github-repo --fixture github.issues
sluice trigger example-github-repo --fixture github.push
waits_for chat 'received {"text":"octo pushed 1 commit(s) to octo/hello: Fix a typo"}'
[ "$(grep -c ^received "$work/chat")" = 1 ] || fail 'the webhook received more than the push'
