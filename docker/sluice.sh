#!/bin/sh
# The image's entry point: sluice <command>. Paths are absolute, so that a command finds its files from any working directory.
set -eu
root=/app

usage() {
  cat <<'EOF'
Usage: sluice <command>

Services, one per container:
  gateway | catalog | routing | event-store | runtime

Commands that end:
  migrate            create or update the databases and topics
  account …          manage accounts
  key …              manage API keys
  registry …         manage the component registry
  component …        check components in files
  kafka acls         print the Kafka ACLs that each service needs
  dead-letters       count and list the records that could not be handled
  secrets init DIR   create the password, the first API key and the key that encrypts secrets in DIR, unless they exist; followed by
                     postgres-password, api-key or secrets-key: only these
  secrets rotate     encrypt all secrets under the first key of SLUICE_SECRETS_KEY
  version            print the version of Sluice

Add --help to account, key, registry or component for their options.
EOF
}

misused() {
  [ -z "$1" ] || echo "sluice: unknown command: $1" >&2
  usage >&2
  exit 2
}

# Commands that end: the stacks of their errors name the lines of our sources. Services translate what they log themselves.
run() {
  exec node --enable-source-maps "$@"
}

# sluice admin … is the same as in a repository.
[ "${1-}" != admin ] || shift

case "${1-}" in
  gateway | catalog | routing | event-store | runtime)
    # Without SIGUSR1 nobody can open the inspector of a running service. One thread helps to collect garbage, as in scripts/processes/apps.mjs.
    export NODE_COMPILE_CACHE="$root/.cache/compiled"
    exec node --disable-sigusr1 --v8-pool-size=1 "$root/dist/bundles/$1.js"
    ;;
  migrate) run "$root/dist/bundles/migrate.js" "$@" ;;
  account | key) run "$root/dist/bundles/gateway-command.js" "$@" ;;
  registry) run "$root/dist/bundles/catalog-command.js" "$@" ;;
  component) run "$root/dist/bundles/runtime-command.js" "$@" ;;
  kafka)
    [ "${2-}" = acls ] || misused "kafka ${2-}"
    shift 2
    run "$root/scripts/kafka-acls.mjs" "$@"
    ;;
  dead-letters)
    shift
    run "$root/scripts/dead-letters.mjs" "$@"
    ;;
  secrets)
    case "${2-}" in
      init) shift 2 && run "$root/scripts/init-secrets.mjs" "$@" ;;
      rotate) run "$root/scripts/rotate-secrets.mjs" "$@" ;;
      *) misused "secrets ${2-}" ;;
    esac
    ;;
  version | --version) run --print "require('$root/package.json').version" ;;
  help | --help | -h) usage ;;
  *) misused "${1-}" ;;
esac
