#!/bin/sh
# Sends the platforms of each new scan to the HTTP Event Collector of Splunk. Settings: posture-list.sh, and
#
# SPLUNK_URL      such as https://splunk.example:8088
# SPLUNK_HEADERS  a file with the line "Authorization: Splunk TOKEN"; mode 600
# STATE           a directory for the time of the last scan that was sent
set -eu

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"$(dirname "$0")/posture-list.sh" discovery > "$directory/platforms"
scan=$(head -n 1 "$directory/platforms" | jq --raw-output .scan_time)
if [ "$scan" = "$(cat "$STATE/splunk" 2> /dev/null)" ]; then exit 0; fi

jq --compact-output '{
    time: (.scan_time | fromdate), source: "posture-service", sourcetype: "posture:platform", event: .
  }' "$directory/platforms" | split -l 100 - "$directory/batch."
for batch in "$directory"/batch.*; do
  [ -e "$batch" ] || continue
  curl --silent --show-error --fail --retry 3 --output /dev/null \
    --header "@$SPLUNK_HEADERS" --data-binary "@$batch" "$SPLUNK_URL/services/collector/event"
done
printf '%s' "$scan" > "$STATE/splunk"
