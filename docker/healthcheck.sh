#!/bin/bash
# Whether the service in this container is ready. Bash instead of Node: a check costs 3 ms, not 130 ms of CPU time.
# Prints the body of the response, which names the reasons; `docker inspect` shows it.
exec 3<>"/dev/tcp/127.0.0.1/$SLUICE_HEALTH_PORT" || exit 1
printf 'GET /health/ready HTTP/1.0\r\n\r\n' >&3
read -r _ status _ <&3
while IFS= read -r header <&3 && [ "$header" != $'\r' ]; do :; done
cat <&3
[ "$status" = 200 ]
