#!/bin/sh
# Stops what a killed launcher (or test runner) leaves behind.
#
# It reads one word a line from the process that started it: "watch <pid> <signal>", "forget <pid>", "remove <folder>", "bye". When the
# input ends without a "bye", that process has died in a way that left it no time to clean up, and this does it in its place.
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
    bye) exit 0 ;;
  esac
done

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
[ -n "$folder" ] && rm -rf -- "$folder"
exit 0
