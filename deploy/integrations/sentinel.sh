#!/bin/sh
# Sends the platforms of each new scan to the Logs Ingestion API of Azure Monitor, for Microsoft Sentinel.
# Settings: posture-list.sh, and
#
# AZURE_LOGIN     https://login.microsoftonline.com/TENANT
# AZURE_SECRET    a file with "client_id=ID&client_secret=SECRET", both URL-encoded; mode 600
# AZURE_ENDPOINT  the logs ingestion endpoint, such as https://NAME.REGION-1.ingest.monitor.azure.com
# AZURE_RULE      the immutable id of the data collection rule: dcr-...
# STATE           a directory for the time of the last scan that was sent
set -eu

umask 077
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"$(dirname "$0")/posture-list.sh" discovery > "$directory/platforms"
scan=$(head -n 1 "$directory/platforms" | jq --raw-output .scan_time)
if [ "$scan" = "$(cat "$STATE/sentinel" 2> /dev/null)" ]; then exit 0; fi

curl --silent --show-error --fail --retry 3 --data "@$AZURE_SECRET" \
  --data 'grant_type=client_credentials&scope=https%3A%2F%2Fmonitor.azure.com%2F.default' \
  "$AZURE_LOGIN/oauth2/v2.0/token" > "$directory/token"
jq --raw-output '"Authorization: Bearer \(.access_token)"' "$directory/token" > "$directory/headers"
jq --compact-output '{
    TimeGenerated: .scan_time, PlatformId: .id, Platform: .platform_name, Vendor: .metadata.vendor,
    Decision: .metadata.decision, Risk: .metadata.risk.score, Confidence: .confidence,
    Clients: .metadata.clients, Domains: .metadata.domains
  }' "$directory/platforms" | split -l 100 - "$directory/batch."
for batch in "$directory"/batch.*; do
  [ -e "$batch" ] || continue
  jq --slurp --compact-output . "$batch" | curl --silent --show-error --fail --retry 3 \
    --header "@$directory/headers" --header 'Content-Type: application/json' --data-binary @- \
    "$AZURE_ENDPOINT/dataCollectionRules/$AZURE_RULE/streams/Custom-PosturePlatforms_CL?api-version=2023-01-01"
done
printf '%s' "$scan" > "$STATE/sentinel"
