#!/bin/sh
# Stops the processes that a killed launcher (or test runner) leaves behind.
#
# It reads one command per line from the process that started it: "watch <kind>:<signal>:<seconds>:<pid>", "unwatch <pid>", "remove <folder>". When the
# input ends, that process has ended. Processes that are still watched were left behind: this script stops them, and removes the temporary folders.
# A shell script, because a second Node process would cost 40 MB for as long as Sluice runs.
watched=''
folders=''
newline='
'
while read -r word rest; do
  case $word in
    watch) watched="$watched $rest" ;;
    unwatch)
      kept=''
      for one in $watched; do [ "${one##*:}" = "$rest" ] || kept="$kept $one"; done
      watched=$kept
      ;;
    remove) folders="$folders$rest$newline" ;;
  esac
done

# Where nobody reaps orphans, a process that has ended still has its number.
is_running() {
  kill -0 "$1" 2>/dev/null || return 1
  case $(ps -o stat= -p "$1" 2>/dev/null) in Z*) return 1 ;; esac
}

# Stops the processes of one kind, and kills those that have not ended after the seconds that the slowest of them may take.
stop() {
  pids=''
  seconds=0
  for one in $watched; do
    [ "${one%%:*}" = "$1" ] || continue
    pid=${one##*:}
    how=${one#*:}
    how=${how%:*}
    pids="$pids $pid"
    [ "${how#*:}" -gt "$seconds" ] && seconds=${how#*:}
    kill -"${how%:*}" "$pid" 2>/dev/null
  done
  tries=$((seconds * 4))
  while [ -n "$pids" ] && [ "$tries" -gt 0 ]; do
    sleep 0.25
    tries=$((tries - 1))
    alive=''
    for pid in $pids; do is_running "$pid" && alive="$alive $pid"; done
    pids=$alive
  done
  for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
}

# The apps finish their work while the broker and the database still respond.
stop app
stop store
printf '%s' "$folders" | while IFS= read -r folder; do rm -rf -- "$folder"; done
exit 0
