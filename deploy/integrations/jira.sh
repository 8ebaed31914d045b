#!/bin/sh
# Creates one issue in Jira Cloud for each open recommendation and each platform that waits for a decision.
# Settings: posture-list.sh, and
#
# JIRA_URL      such as https://acme.atlassian.net
# JIRA_HEADERS  a file with the line "Authorization: Basic BASE64" of "ADDRESS:API-TOKEN"; mode 600
# JIRA_PROJECT  the key of the project
# STATE         a directory with one empty file for each issue that was created
set -eu

post() {
  curl --silent --show-error --fail --retry 3 --header "@$JIRA_HEADERS" --header 'Accept: application/json' \
    --header 'Content-Type: application/json' --data-binary "@$directory/body" "$JIRA_URL/rest/api/3/$1"
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"$(dirname "$0")/posture-tickets.sh" > "$directory/tickets"
while IFS= read -r ticket; do
  label=posture-$(printf '%s' "$ticket" | jq --raw-output .id)
  if [ -e "$STATE/$label" ]; then continue; fi
  # Also after STATE was lost, no issue is created twice.
  jq --null-input --arg jql "project = \"$JIRA_PROJECT\" AND labels = \"$label\"" \
    '{jql: $jql, maxResults: 1, fields: ["summary"]}' > "$directory/body"
  post search/jql > "$directory/found"
  if jq --exit-status '.issues | length == 0' "$directory/found" > /dev/null; then
    printf '%s' "$ticket" | jq --arg project "$JIRA_PROJECT" --arg own "$label" '{fields: {
        project: {key: $project}, issuetype: {name: "Task"}, summary: .title[:255],
        labels: ["posture", $own],
        description: {type: "doc", version: 1, content: [
          {type: "paragraph", content: [{type: "text", text}]}
        ]}
      }}' > "$directory/body"
    post issue > "$directory/created"
    jq --raw-output .key "$directory/created"
  fi
  : > "$STATE/$label"
done < "$directory/tickets"
