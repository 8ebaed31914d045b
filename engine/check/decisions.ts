import { DECIDED_PLATFORMS_MAX, DECISIONS_KEPT_MAX } from '../limits.ts'
import { DECISION_KINDS, type Decision, type LastDecision } from '../store/decisions.ts'
import { UUID_BYTES, uuidBytes } from '../store/keys.ts'
import { packed, type StoreWalk } from './walk.ts'

const SEQUENCE_BYTES = 8

/** Checks decisions about platforms: the last ones, and that they are those of the history. */
export function checkDecisions(walk: StoreWalk): void {
  const lastForm = { keyBytes: UUID_BYTES, open: packed<Readonly<Record<string, LastDecision>>>('last decisions') }
  walk.table('decisions', lastForm, ({ value, organizationId }) => {
    const wrong = (found: string, expected: string): void => walk.wrong('decisions', organizationId, found, expected)
    const all = Object.entries(value)
    if (all.length > DECIDED_PLATFORMS_MAX) wrong(`${all.length} platforms`, `${DECIDED_PLATFORMS_MAX} at most`)
    walk.unlessUnreadable(() => {
      const decisions = walk.store.decisions.ofPlatforms(
        organizationId,
        all.map(([platformId]) => platformId),
      )
      for (const [platformId, last] of all) {
        const decision = decisions.get(platformId)
        const isSame =
          decision?.kind === last.kind &&
          decision.plan === last.plan &&
          decision.expiresAtMs === last.expiresAtMs &&
          decision.decidedAtMs === last.decidedAtMs
        if (!isSame) wrong(`decision ${last.sequence} about ${platformId}`, 'the one of the history')
      }
    })
  })
  const historyForm = {
    keyBytes: UUID_BYTES + 1 + SEQUENCE_BYTES,
    keyIsLonger: true,
    open: packed<Decision>('decision'),
  }
  // The records of an organization follow each other, so its last decisions are read once.
  let lastOf = ''
  let last: ReadonlyMap<string, LastDecision> = new Map()
  walk.table('decision-history', historyForm, ({ key, value, organizationId }) => {
    const { platformId, sequence, kind, note, owner, decidedBy, decidedAtMs, expiresAtMs } = value
    const wrong = (found: string, expected: string): void =>
      walk.wrong('decision-history', organizationId, `${found} of decision ${sequence} about ${platformId}`, expected)
    const own = Buffer.concat([uuidBytes(organizationId), Buffer.from(`${platformId}\0`)])
    const isAtItsKey =
      key.length === own.length + SEQUENCE_BYTES &&
      key.subarray(0, own.length).equals(own) &&
      key.readBigUInt64BE(own.length) === BigInt(sequence)
    if (!isAtItsKey) wrong('the record', 'the one in its key')
    if (!DECISION_KINDS.includes(kind)) wrong(`the kind ${kind}`, DECISION_KINDS.join(', '))
    if (![note, owner, decidedBy].every((text) => typeof text === 'string')) wrong('the note, owner or author', 'text')
    const isCounted = [decidedAtMs, expiresAtMs].every((timeMs) => Number.isSafeInteger(timeMs) && timeMs >= 0)
    if (!isCounted) wrong(`the times ${decidedAtMs} and ${expiresAtMs}`, 'whole numbers')
    walk.unlessUnreadable(() => {
      if (lastOf !== organizationId) {
        last = walk.store.decisions.last(organizationId)
        lastOf = organizationId
      }
      const newest = last.get(platformId)?.sequence ?? 0
      if (sequence <= newest && sequence > newest - DECISIONS_KEPT_MAX) return
      wrong('the number', `one of the ${DECISIONS_KEPT_MAX} up to ${newest}`)
    })
  })
}
