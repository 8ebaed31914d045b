#!/bin/sh
# Writes the platforms to an index of Elasticsearch, one document for each platform and scan. A run that is
# repeated changes nothing. Settings: posture-list.sh, and
#
# ELASTIC_URL      such as https://elastic.example:9200
# ELASTIC_HEADERS  a file with the line "Authorization: ApiKey KEY"; mode 600
# ELASTIC_CA       a PEM file, unless this machine trusts the certificate of Elasticsearch
set -eu

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"$(dirname "$0")/posture-list.sh" discovery > "$directory/platforms"
jq --compact-output '
    {index: {_index: "posture-platforms", _id: "\(.id)-\(.scan_time)"}},
    ({"@timestamp": .scan_time} + .)' "$directory/platforms" | split -l 200 - "$directory/batch."
for batch in "$directory"/batch.*; do
  [ -e "$batch" ] || continue
  curl --silent --show-error --fail --retry 3 ${ELASTIC_CA:+--cacert "$ELASTIC_CA"} \
    --header "@$ELASTIC_HEADERS" --header 'Content-Type: application/x-ndjson' \
    --data-binary "@$batch" "$ELASTIC_URL/_bulk" > "$directory/answer"
  # The status is 200 even if documents were rejected.
  jq --exit-status '.errors | not' "$directory/answer" > /dev/null || {
    jq --compact-output '[.items[].index.error | select(. != null)][0]' "$directory/answer" >&2
    exit 1
  }
done
