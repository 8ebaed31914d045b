import { DECISIONS_KEPT_MAX } from '../limits.ts'
import { DECISION_KINDS, type Decision } from '../store/decisions.ts'
import { UUID_BYTES, uuidBytes } from '../store/keys.ts'
import { packed, type StoreWalk } from './walk.ts'

const SEQUENCE_BYTES = 8

/** Checks decisions about platforms: the last one about each, and the kept ones before it. */
export function checkDecisions(walk: StoreWalk): void {
  const lastForm = { keyBytes: UUID_BYTES, keyIsLonger: true, open: packed<Decision>('decision') }
  walk.table('decisions', lastForm, ({ key, value, organizationId }) => {
    const own = Buffer.concat([uuidBytes(organizationId), Buffer.from(value.platformId)])
    if (!own.equals(key))
      walk.wrong('decisions', organizationId, `the one of ${value.platformId}`, 'the one in its key')
    checkFields(walk, 'decisions', organizationId, value)
  })
  const pastForm = {
    keyBytes: UUID_BYTES + 1 + SEQUENCE_BYTES,
    keyIsLonger: true,
    open: packed<Decision>('past decision'),
  }
  walk.table('past-decisions', pastForm, ({ key, value, organizationId }) => {
    const { platformId, sequence } = value
    const wrong = (found: string, expected: string): void =>
      walk.wrong('past-decisions', organizationId, found, expected)
    const own = Buffer.concat([uuidBytes(organizationId), Buffer.from(`${platformId}\0`)])
    const isAtItsKey =
      key.length === own.length + SEQUENCE_BYTES &&
      key.subarray(0, own.length).equals(own) &&
      key.readBigUInt64BE(own.length) === BigInt(sequence)
    if (!isAtItsKey) wrong(`decision ${sequence} about ${platformId}`, 'the one in its key')
    checkFields(walk, 'past-decisions', organizationId, value)
    walk.unlessUnreadable(() => {
      const last = walk.store.decisions.get(organizationId, platformId)?.sequence ?? 0
      if (sequence < last && sequence > last - DECISIONS_KEPT_MAX) return
      wrong(`decision ${sequence} about ${platformId}`, `one of the ${DECISIONS_KEPT_MAX} up to ${last}`)
    })
  })
}

function checkFields(walk: StoreWalk, table: string, organizationId: string, decision: Decision): void {
  const { platformId, kind, note, owner, decidedBy, decidedAtMs, expiresAtMs, sequence } = decision
  const wrong = (found: string, expected: string): void =>
    walk.wrong(table, organizationId, `${found} of decision ${sequence} about ${platformId}`, expected)
  if (!DECISION_KINDS.includes(kind)) wrong(`the kind ${kind}`, DECISION_KINDS.join(', '))
  if (![note, owner, decidedBy].every((text) => typeof text === 'string')) wrong('the note, owner or author', 'texts')
  const isCounted = [decidedAtMs, expiresAtMs, sequence].every((count) => Number.isSafeInteger(count) && count >= 0)
  if (!isCounted || sequence < 1)
    wrong(`the times ${decidedAtMs} and ${expiresAtMs}`, 'whole numbers, and a number from 1')
}
