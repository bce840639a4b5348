#!/bin/sh
# Stops what a killed launcher (or test runner) leaves behind.
#
# It reads one order a line from the process that started it: "watch <pid> <signal>", "forget <pid>", "remove <folder>". When the input
# ends, that process has ended. What is still watched then was left behind: this stops it, and removes the temporary folder.
# A shell script, because a second Node process would cost 40 MB for as long as Sluice runs.
watched=''
folder=''
while read -r word rest; do
  case $word in
    watch) watched="$watched ${rest% *}:${rest#* }" ;;
    forget)
      kept=''
      for one in $watched; do [ "${one%:*}" = "$rest" ] || kept="$kept $one"; done
      watched=$kept
      ;;
    remove) folder=$rest ;;
  esac
done

if [ -n "$watched" ]; then
  # The apps leave by themselves when their channel to the launcher closes; let them, while the broker and the database still answer.
  sleep 1
  for one in $watched; do kill -"${one#*:}" "${one%:*}" 2>/dev/null; done
  tries=0
  while [ "$tries" -lt 60 ]; do
    alive=''
    for one in $watched; do kill -0 "${one%:*}" 2>/dev/null && alive="$alive ${one%:*}"; done
    [ -z "$alive" ] && break
    sleep 0.25
    tries=$((tries + 1))
  done
  for pid in $alive; do kill -KILL "$pid" 2>/dev/null; done
fi
[ -n "$folder" ] && rm -rf -- "$folder"
exit 0
