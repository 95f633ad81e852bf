#!/bin/sh
# Arguments: a folder, and the command of an SSH client that has its control socket there. Standard input stays open for
# as long as podperf runs. When it ends, the client ends. The folder goes with the client.
folder=$1
shift
exec 3<&0
"$@" </dev/null 3<&- &
client=$!
{ read -r _ <&3; kill "$client"; } 2>/dev/null &
reader=$!
exec 3<&-
wait "$client"
kill "$reader" 2>/dev/null
rm -rf "$folder"
