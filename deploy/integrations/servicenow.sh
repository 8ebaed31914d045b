#!/bin/sh
# Creates one incident in ServiceNow for each open recommendation and each platform that waits for a decision.
# Settings: posture-list.sh, and
#
# SERVICENOW_URL      such as https://acme.service-now.com
# SERVICENOW_HEADERS  a file with the line "Authorization: Basic BASE64" of "USER:PASSWORD"; mode 600
set -eu

call() {
  curl --silent --show-error --fail --retry 3 --header "@$SERVICENOW_HEADERS" \
    --header 'Accept: application/json' --header 'Content-Type: application/json' "$@"
}

table=$SERVICENOW_URL/api/now/table/incident
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"$(dirname "$0")/posture-tickets.sh" > "$directory/tickets"
while IFS= read -r ticket; do
  id=$(printf '%s' "$ticket" | jq --raw-output .id)
  call "$table?sysparm_query=correlation_id%3D$id&sysparm_fields=number&sysparm_limit=1" > "$directory/found"
  if jq --exit-status '.result | length > 0' "$directory/found" > /dev/null; then continue; fi
  printf '%s' "$ticket" | jq '{
      short_description: .title[:160], description: .text, correlation_id: .id,
      correlation_display: "Security Posture Service", urgency: "2", impact: "2"
    }' > "$directory/body"
  call --data-binary "@$directory/body" "$table" > "$directory/created"
  jq --raw-output .result.number "$directory/created"
done < "$directory/tickets"
