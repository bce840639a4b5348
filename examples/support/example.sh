# Sourced by the run.sh of every example. It connects to the Sluice that `npm start` runs, or to SLUICE_URL with SLUICE_API_KEY.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
created=()

sluice() { node "$root/scripts/sluice.mjs" "$@"; }

# Deletes what the example has created, and stops its servers.
finish() {
  local status=$?
  trap - EXIT
  for name in "${created[@]}"; do sluice delete $name --yes > /dev/null 2>&1 || true; done
  local servers
  servers=$(jobs -p)
  [ -z "$servers" ] || kill $servers 2> /dev/null || true
  rm -rf "$work"
  [ $status -eq 0 ] && echo "The example works." || echo "The example failed." >&2
  exit $status
}
trap finish EXIT

# creates KIND NAME…: the example creates these resources, which are deleted at the end, and before it begins if an earlier run has left them.
creates() {
  created=("$@")
  for name in "$@"; do sluice delete $name --yes > /dev/null 2>&1 || true; done
}

# start NAME COMMAND…: runs a server in the background; its output goes to $work/NAME.
start() {
  local name=$1
  shift
  # here, and not in the background: what an earlier server of this name has printed must not be found
  : > "$work/$name"
  "$@" >> "$work/$name" 2>&1 &
}

# waits_for NAME TEXT [COUNT]: shows the first line with the text in the output of a server, or fails after 60 seconds. COUNT: this many lines.
waits_for() {
  local count=0 tries
  for tries in $(seq 300); do
    count=$(grep -cF -- "$2" "$work/$1" 2> /dev/null || true)
    if [ "${count:-0}" -ge "${3:-1}" ]; then
      grep -F -- "$2" "$work/$1" | sed "s/^/  $1: /"
      return
    fi
    sleep 0.2
  done
  fail "$1 did not print: $2, but: $(cat "$work/$1")"
}

fail() {
  echo "$*" >&2
  exit 1
}

# receiver NAME [PORT [SECRET]]: starts a receiver of webhooks; $url is its address.
receiver() {
  start "$1" node "$root/examples/support/receiver.mjs" "${2:-0}" "${3:-}"
  waits_for "$1" 'receiving webhooks' > /dev/null
  url=$(sed -n 's/^receiving webhooks at //p' "$work/$1")
}

# field PATH: a field of the JSON on standard input.
field() { node -p "JSON.parse(fs.readFileSync(0, 'utf8'))$1"; }
