import { randomUUID } from 'node:crypto'

/*
 * The keys of the service's store. Those of an organization's data begin with the organization (o,
 * 16 bytes), so that no range read can leave it:
 *
 *   table               key                              value
 *   organizations       o                                Organization
 *   organization-names  name, lower case, UTF-8          o                              [index]
 *   own-platforms       o + platform id                  OwnPlatform
 *   own-frameworks      o + framework id                 OwnFramework
 *   own-framework-items o + framework id                 TemplateCategory[]
 *   registry-versions   o                                version number, see own-platforms.ts
 *   organization-removals  o                             Removal of an organization
 *   members             o + name, lower case             Member
 *   memberships         user id (16) + o                 key of the member              [index]
 *   users               user id (16)                     User
 *   user-names          name, lower case, UTF-8          user id (16)                   [index]
 *   sessions            user id (16) + session id (16)   Session
 *   session-hashes      SHA-256 of the cookie (32)       user id + session id           [index]
 *   passkeys            user id (16) + passkey id (16)   Passkey
 *   passkey-credentials SHA-256 of the credential's id   user id + passkey id           [index]
 *   account-links       SHA-256 of the secret (32)       AccountLink
 *   audit-log           o + sequence (8)                 AuditEntry
 *   api-keys            o + key id (16)                  ApiKey
 *   key-uses            o + key id (16)                  time of last use
 *   api-key-hashes      SHA-256 of the raw key (32)      o + key id                     [index]
 *   monitoring-tokens   o + token id (16)                MonitoringToken
 *   token-hashes        SHA-256 of the raw token (32)    o + token id                   [index]
 *   block-list-links    o + link id (16)                 BlockListLink
 *   block-list-link-hashes  SHA-256 of the secret (32)   o + link id                    [index]
 *   token-bindings      o + token id (16) + text         TokenBinding
 *   sources             o + token id (16) + hash (16)    counters of one sender
 *   rejects             o + sequence (8)                 message not understood, redacted
 *   candidates          o + name, canonical              Candidate
 *   read-lines          o + two hashes (32)              hashes of log messages already read
 *   buffer              o + sequence (8), see queue.ts   Event
 *   log-positions       name of the log                  LogPosition, see log-positions.ts
 *   nodes               node of a cluster                ClusterNode, see nodes.ts
 *   unmatched-events    o + sequence (8), see queue.ts   Event of no platform of the registry
 *   seen                o + collector instance (8)       newest counted sequences
 *   seen-pages          o + instance (8) + last (8)      older ones, see seen-instance.ts
 *   evidence            o + day (4) + platform id        evidence of one platform on one day
 *   clients             o + day (4) + platform id        clients, see client-records.ts
 *   client-totals       o                                size of these
 *   client-summaries    o + u or a + client              ClientSummary
 *   client-summary-totals  o                             SummaryTotals
 *   client-names        o + address (16)                 names of an address
 *   client-networks     o + address (16) + prefix (1)    NamedNetwork
 *   client-groups       o + name, lower case             ClientGroup
 *   saved-views         o + name, lower case             SavedView
 *   client-erasures     o                                ClientErasure
 *   detections          o + platform id                  id and first time of a platform
 *   decisions           o                                last decisions by platform
 *   decision-history    o + platform id, 0 + seq. (8)    Decision
 *   daily-use           o                                clients by day
 *   history             o + day (4)                      HistoryDay
 *   scans               o + requested (8) + scan id (16) Scan
 *   scan-requests       o                                the pending scan
 *   scan-states         o                                ScanState
 *   assessments         o + assessment id (16)           Assessment
 *   assessment-answers  o + assessment id (16)           categories, items and answers
 *   recommendations     o + framework, 0, item id        Recommendation
 *   api-versions        o                                version number, see api-versions.ts
 *   published           o + list (1) + part (4)          API responses, see published.ts
 *   coverage-sensors    o + sensor's instance (8)        last coverage report
 *   coverage-days       o + day (4)                      coverage of all sensors on one day
 *   alerts              o + sequence (8)                 Alert
 *   alert-rules         o                                settings of alert rules
 *   alert-states        o                                AlertState
 *   alert-reports       o + rule, 0 + hash (16)          ReportedCondition
 *   alert-channels      o + channel id (16)              AlertChannel
 *   alert-channel-states  o + channel id (16)            AlertChannelState
 *   alert-queue         o + channel id + sequence (8)    message that waits, see queue.ts
 *   alert-outcomes      o + channel id + sequence (8)    MessageOutcome
 *   alert-dead-letters  o + channel id + sequence (8)    DeadLetter
 *   report-schedules    o + schedule id (16)             ReportSchedule
 *
 * A user can belong to several organizations, so users, sessions and passkeys do not begin with
 * one. A log has the events of all. The indexes do not begin with the organization, because they
 * are used to find it. Their keys are known only to the organization (the hash of a secret) or
 * unique (its name). Sources without a known token have the all-zero organization, which does not
 * exist, and so have platforms that every organization has. Numbers are big-endian, so that byte
 * order is numeric order.
 */
export const ORGANIZATION_KEY_BYTES = 16
export const UUID_BYTES = 16

/** A UUID as 16 bytes, which must not be changed. */
export function uuidBytes(uuid: string): Buffer {
  if (uuid !== lastUuid) {
    lastUuidBytes = Buffer.from(uuid.replaceAll('-', ''), 'hex')
    lastUuid = uuid
  }
  return lastUuidBytes
}

/** A scan makes hundreds of keys of one organization. */
let lastUuid = ''
let lastUuidBytes = Buffer.alloc(0)

/** The key of a record with an id of its own, of an organization or a user. */
export function ownKey(ownerId: string, id: string): Buffer {
  return Buffer.concat([uuidBytes(ownerId), uuidBytes(id)])
}

/** The key of a record about something of an organization that is named by text. */
export function textKey(organizationId: string, text: string): Buffer {
  const key = Buffer.allocUnsafe(UUID_BYTES + Buffer.byteLength(text))
  key.set(uuidBytes(organizationId))
  key.write(text, UUID_BYTES)
  return key
}

/** The same by day (days since 1970). */
export function dayTextKey(organizationId: string, day: number, text: string): Buffer {
  const key = Buffer.allocUnsafe(UUID_BYTES + 4 + Buffer.byteLength(text))
  key.set(uuidBytes(organizationId))
  key.writeUInt32BE(day, UUID_BYTES)
  key.write(text, UUID_BYTES + 4)
  return key
}

/** The UUID in the first 16 bytes. */
export function uuidText(bytes: Buffer): string {
  const hex = bytes.toString('hex', 0, UUID_BYTES)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

export function newUuid(): string {
  return randomUUID()
}

export function u32Bytes(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeUInt32BE(value)
  return bytes
}

export function u64Bytes(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes
}

/** The first key after all keys that begin with `prefix`: the prefix as a number, plus one. */
export function endOfPrefix(prefix: Uint8Array): Buffer {
  const end = Buffer.from(prefix)
  for (let at = end.length - 1; at >= 0; at--) {
    if (end[at] !== 0xff) {
      end[at] = (end[at] ?? 0) + 1
      return end.subarray(0, at + 1)
    }
  }
  // All bytes are ff. Only longer keys with the same prefix can follow.
  return Buffer.concat([prefix, Buffer.alloc(64, 0xff)])
}
