#!/bin/sh
# Stops the processes that a killed launcher (or test runner) leaves behind.
#
# It reads one command per line from the process that started it: "watch <pid> <signal>", "unwatch <pid>", "remove <folder>". When the input
# ends, that process has ended. Processes that are still watched were left behind: this script stops them, and removes the temporary folder.
# A shell script, because a second Node process would cost 40 MB for as long as Sluice runs.
watched=''
folder=''
while read -r word rest; do
  case $word in
    watch) watched="$watched ${rest% *}:${rest#* }" ;;
    unwatch)
      kept=''
      for one in $watched; do [ "${one%:*}" = "$rest" ] || kept="$kept $one"; done
      watched=$kept
      ;;
    remove) folder=$rest ;;
  esac
done

if [ -n "$watched" ]; then
  # The apps exit when their channel to the launcher closes: let them finish while the broker and the database still respond.
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
