#!/bin/sh
# Prints what needs a ticket, one JSON object per line with id, title and text: open recommendations, and
# platforms that wait for a decision. Settings: posture-list.sh
set -eu

list=$(dirname "$0")/posture-list.sh
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"$list" recommendations > "$directory/recommendations"
"$list" discovery > "$directory/platforms"
jq --compact-output 'select(.status == "open") | {
    id, title, text: "Priority \(.priority) of 5. Framework \(.framework_id), category \(.category)."
  }' "$directory/recommendations"
jq --compact-output 'select(.metadata.decision == "waiting") | {
    id, title: "Decide about the AI platform \(.platform_name)",
    text: "Risk \(.metadata.risk.score) of 100: \(.metadata.risk.why). Clients: \(.metadata.clients)."
  }' "$directory/platforms"
