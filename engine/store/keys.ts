import { randomUUID } from 'node:crypto'

/*
 * Keys of the service's store. Every key begins with the organization, so that no range read can leave it:
 *
 *   table               key                                              value
 *   organizations       organization (16)                                Organization
 *   organization-names  name, lower case, UTF-8                          organization (16)      [index]
 *   members             organization (16) + name, lower case             Member
 *   memberships         user id (16) + organization (16)                  key of the member      [index]
 *   users               user id (16)                                     User
 *   user-names          name, lower case, UTF-8                          user id (16)           [index]
 *   sessions            user id (16) + session id (16)                   Session
 *   session-hashes      SHA-256 of the cookie's value (32)               user id + session id   [index]
 *   account-links       SHA-256 of the link's secret (32)                AccountLink
 *   audit-log           organization (16) + sequence (8)                 AuditEntry
 *   api-keys            organization (16) + key id (16)                  ApiKey
 *   key-uses            organization (16) + key id (16)                  when it was used last
 *   api-key-hashes      SHA-256 of the raw key (32)                      organization + key id  [index]
 *   monitoring-tokens   organization (16) + token id (16)                MonitoringToken
 *   token-hashes        SHA-256 of the raw token (32)                    organization + token id [index]
 *   token-bindings      organization (16) + token id (16) + text     address and port whose messages are a token's
 *   sources             organization (16) + token id (16) + hash (16)  what one sender sent, counted
 *   rejects             organization (16) + sequence (8)             messages that were not understood, redacted
 *   read-lines          organization (16) + two hashes (32)          which messages of log files were read
 *   buffer              organization (16) + sequence (8), see queue.ts   Event
 *   seen                organization (16) + collector instance (8)       sequences that were counted
 *   evidence            organization (16) + day (4) + platform id        evidence of one platform on one day
 *   detections          organization (16) + platform id                  id and first time of a detected platform
 *   scans               organization (16) + requested (8) + scan id (16) Scan
 *   scan-requests       organization (16)                                the scan that is pending
 *   scan-states         organization (16)                                ScanState
 *   assessments         organization (16) + assessment id (16)           Assessment
 *   assessment-answers  organization (16) + assessment id (16)           categories, items and answers of an assessment
 *   recommendations     organization (16) + framework, 0, item id        Recommendation
 *   api-versions        organization (16)                                a number that changes with what the API reads
 *   published           organization (16) + list (1) + part (4)          ready bytes of the API, see published.ts
 *   coverage-sensors    organization (16) + sensor's instance (8)        its last report of coverage
 *   coverage-days       organization (16) + day (4)                      what all sensors saw and did not see on one day
 *
 * A user can belong to several organizations, so users and their sessions do not begin with one.
 * The indexes cannot begin with the organization, since they answer which organization it is. They are keyed by
 * what only the organization knows (a secret's hash) or by its unique name. Sources without a token that is known are of the organization whose
 * id is all zero, which is none. Numbers are big-endian, so that order of
 * bytes is order of numbers.
 */
export const ORGANIZATION_KEY_BYTES = 16
export const UUID_BYTES = 16

/** A UUID in its 16 bytes. */
export function uuidBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex')
}

/** The UUID that stands in the first 16 bytes. */
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

/** The first key behind all keys that begin with `prefix`: the prefix as a number, plus one. */
export function endOfPrefix(prefix: Uint8Array): Buffer {
  const end = Buffer.from(prefix)
  for (let at = end.length - 1; at >= 0; at--) {
    if (end[at] !== 0xff) {
      end[at] = (end[at] ?? 0) + 1
      return end.subarray(0, at + 1)
    }
  }
  // Only ff bytes: no key can stand behind them but longer ones of the same prefix.
  return Buffer.concat([prefix, Buffer.alloc(64, 0xff)])
}
