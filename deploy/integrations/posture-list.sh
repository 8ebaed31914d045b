#!/bin/sh
# Prints a whole list of the REST API, one JSON object per line.
#
#   posture-list.sh discovery | recommendations
#
# POSTURE_URL      such as https://posture.example:8443
# POSTURE_HEADERS  a file with the line "X-API-Key: svc_pk_..."; mode 600
# POSTURE_CA       a PEM file, unless this machine trusts the service's certificate
set -eu

case ${1:-} in
  discovery) filter='.scan.completed_at as $time | .platforms[] | {scan_time: $time} + .' ;;
  recommendations) filter='.recommendations[]' ;;
  *) echo 'usage: posture-list.sh discovery | recommendations' >&2; exit 2 ;;
esac
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

offset=0
tag=
: > "$directory/all"
while :; do
  status=$(curl --silent --show-error --retry 3 ${POSTURE_CA:+--cacert "$POSTURE_CA"} \
    --header "@$POSTURE_HEADERS" ${tag:+--header "If-Match: $tag"} \
    --dump-header "$directory/headers" --output "$directory/page" --write-out '%{http_code}' \
    "$POSTURE_URL/api/v1/$1?limit=100&offset=$offset")
  case $status in
    200) ;;
    # The list changed between two pages: read it again from the beginning.
    412) offset=0; tag=; : > "$directory/all"; continue ;;
    *) echo "posture-list.sh: $1: status $status: $(cat "$directory/page")" >&2; exit 1 ;;
  esac
  tag=$(tr -d '\r' < "$directory/headers" | sed -n 's/^[Ee][Tt]ag: //p')
  jq --compact-output "$filter" "$directory/page" > "$directory/elements"
  cat "$directory/elements" >> "$directory/all"
  [ "$(wc -l < "$directory/elements")" -eq 100 ] || break
  offset=$((offset + 100))
done
cat "$directory/all"
