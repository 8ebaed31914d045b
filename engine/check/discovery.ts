import { dayOf } from '../kernel/process/clock.ts'
import { isSketch } from '../scan/distinct-clients.ts'
import { isCountOf } from '../scan/use-count.ts'
import type { DayUse } from '../store/daily-use.ts'
import { SOURCES_PER_DAY_MAX } from '../store/event-source.ts'
import type { Detection } from '../store/evidence.ts'
import { type DayEvidence, NAMES_PER_DAY_MAX } from '../store/evidence.ts'
import type { HistoryDay } from '../store/history.ts'
import { UUID_BYTES, uuidText } from '../store/keys.ts'
import type { ScanState } from '../store/scan-states.ts'
import type { Scan, ScanRequest } from '../store/scans.ts'
import { packed, type StoreWalk } from './walk.ts'

const DAY_BYTES = 4
const TIME_BYTES = 8

/** Checks evidence and detections, and scans with their requests and states. */
export function checkDiscovery(walk: StoreWalk): void {
  checkEvidence(walk)
  checkDetections(walk)
  checkDailyUse(walk)
  checkHistory(walk)
  checkScans(walk)
  checkRequests(walk)
  checkStates(walk)
}

function checkEvidence(walk: StoreWalk): void {
  const form = {
    keyBytes: UUID_BYTES + DAY_BYTES,
    keyIsLonger: true,
    open: packed<DayEvidence | Omit<DayEvidence, 'used'>>('evidence'),
  }
  walk.table('evidence', form, ({ key, value, organizationId }) => {
    const day = key.readUInt32BE(UUID_BYTES)
    const platform = key.toString('utf8', UUID_BYTES + DAY_BYTES)
    const wrong = (found: string, expected: string): void =>
      walk.wrong('evidence', organizationId, `${found} of ${platform} on day ${day}`, expected)
    const { matches, blocked, byMethod, byRole, byPurpose, byAccess, byName, bySource = {}, otherNames } = value
    const { firstSeenMs, lastSeenMs, domainStrength, specificity } = value
    const sums = [
      ['methods', sumOf(byMethod)],
      ['roles', sumOf(byRole)],
      ['purposes', sumOf(byPurpose)],
      ['names', sumOf(byName) + otherNames],
    ] as const
    if (!(Number.isSafeInteger(matches) && matches >= 1)) wrong(`${matches} matches`, 'a whole number from 1')
    for (const [what, sum] of sums) if (sum !== matches) wrong(`${sum} matches by ${what}`, `${matches}`)
    if (sumOf(bySource) > matches) wrong(`${sumOf(bySource)} matches by source`, `at most ${matches}`)
    if (Object.keys(bySource).length > SOURCES_PER_DAY_MAX)
      wrong(`${Object.keys(bySource).length} sources`, `at most ${SOURCES_PER_DAY_MAX}`)
    if (!(blocked >= 0 && blocked <= matches)) wrong(`${blocked} blocked matches`, `0 to ${matches}`)
    if (Object.keys(byName).length > NAMES_PER_DAY_MAX)
      wrong(`${Object.keys(byName).length} names`, `${NAMES_PER_DAY_MAX}`)
    if (!(firstSeenMs <= lastSeenMs)) wrong(`the times ${firstSeenMs} to ${lastSeenMs}`, 'the first not after the last')
    if (dayOf(lastSeenMs) !== day) wrong(`the last time ${lastSeenMs}`, 'one of that day')
    const used = 'used' in value ? value.used : (byPurpose.use ?? 0)
    if (!(used >= 0 && used <= matches)) wrong(`${used} used matches`, `0 to ${matches}`)
    if (sumOf(byAccess) > used) wrong(`${sumOf(byAccess)} matches by access`, `at most ${used}, the used ones`)
    const isFound = used > 0
    if (!(domainStrength > 0 === isFound && specificity >= domainStrength && specificity <= 1)) {
      wrong(`the strength ${domainStrength} and specificity ${specificity}`, isFound ? 'more than 0' : '0')
    }
    for (const sketch of [value.clients, value.interactiveClients, value.apiClients]) {
      if (sketch !== undefined && !isSketch(sketch)) wrong(`a sketch of ${sketch.length} bytes`, 'one of its two forms')
    }
  })
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

function checkDetections(walk: StoreWalk): void {
  const form = { keyBytes: UUID_BYTES, keyIsLonger: true, open: packed<Detection>('detection') }
  walk.table('detections', form, ({ key, value, organizationId }) => {
    const platform = key.toString('utf8', UUID_BYTES)
    if (/^[0-9a-f-]{36}$/.test(value.id) && value.createdAtMs >= 0) return
    const found = `the id ${value.id} made at ${value.createdAtMs} of ${platform}`
    walk.wrong('detections', organizationId, found, 'a UUID and a time')
  })
}

function checkDailyUse(walk: StoreWalk): void {
  const form = { keyBytes: UUID_BYTES, open: packed<readonly DayUse[]>('daily use') }
  walk.table('daily-use', form, ({ value, organizationId }) => {
    let before = -1
    for (const use of value) {
      const { day, approved, notApproved, sketches } = use
      const counts = `${approved} and ${notApproved} on day ${day}`
      const isCounted = [day, approved, notApproved].every((count) => Number.isSafeInteger(count) && count >= 0)
      if (isCounted && day > before) before = day
      else walk.wrong('daily-use', organizationId, counts, 'counts, by day')
      if (sketches === undefined) continue
      if (use !== value.at(-1)) walk.wrong('daily-use', organizationId, `sketches of day ${day}`, 'only the last day')
      const areSketches = isSketch(sketches.all) && isSketch(sketches.notApproved)
      if (!areSketches || !isCountOf(sketches, use)) walk.wrong('daily-use', organizationId, counts, 'its sketches')
    }
  })
}

function checkHistory(walk: StoreWalk): void {
  const form = { keyBytes: UUID_BYTES + DAY_BYTES, open: packed<HistoryDay>('history of scans') }
  walk.table('history', form, ({ key, value, organizationId }) => {
    const day = key.readUInt32BE(UUID_BYTES)
    const { completedAtMs, summary, platforms } = value
    const wrong = (found: string, expected: string): void =>
      walk.wrong('history', organizationId, `${found} on day ${day}`, expected)
    if (dayOf(completedAtMs) !== day) wrong(`a scan of ${completedAtMs}`, 'one of that day')
    const ai = platforms.filter(({ use }) => use === 'ai').length
    if (ai !== summary.platformsDiscovered) {
      wrong(`${ai} AI platforms`, `${summary.platformsDiscovered}, as in the summary`)
    }
    const { aiCapableCount, blockedCount = 0, touchedCount = 0 } = summary
    const others = aiCapableCount + blockedCount + touchedCount
    if (platforms.length - ai !== others) wrong(`${platforms.length - ai} others`, `${others}, as in the summary`)
  })
}

/** The scans of one organization, in order of their requests. */
class ScansRead {
  readonly organizationId: string
  count = 0
  pending = 0
  running = 0

  constructor(organizationId: string) {
    this.organizationId = organizationId
  }
}

function checkScans(walk: StoreWalk): void {
  const { scans, scanStates } = walk.store
  let read = new ScansRead('')
  const wrong = (found: string, expected: string): void => walk.wrong('scans', read.organizationId, found, expected)
  const end = (): void => {
    if (read.organizationId === '') return
    if (read.pending > 1) wrong(`${read.pending} pending scans`, 'one at most')
    if (read.running > 1) wrong(`${read.running} running scans`, 'one at most')
    walk.unlessUnreadable(() => {
      const { stored } = scanStates.get(read.organizationId)
      if (stored !== read.count) wrong(`${read.count} scans`, `${stored}, as in scan-states`)
    })
  }
  const form = { keyBytes: 2 * UUID_BYTES + TIME_BYTES, open: packed<Scan>('scan') }
  walk.table('scans', form, ({ key, value, organizationId }) => {
    if (read.organizationId !== organizationId) {
      end()
      read = new ScansRead(organizationId)
    }
    read.count++
    if (value.status === 'pending') read.pending++
    if (value.status === 'running') read.running++
    const isAtItsKey =
      value.organizationId === organizationId &&
      value.requestedAtMs === Number(key.readBigUInt64BE(UUID_BYTES)) &&
      value.id === uuidText(key.subarray(UUID_BYTES + TIME_BYTES))
    if (!isAtItsKey) wrong(`the scan ${value.id} requested at ${value.requestedAtMs}`, 'the one in its key')
    const contradiction = contradictionOf(value)
    if (contradiction !== undefined)
      wrong(`the ${value.status} scan ${value.id} ${contradiction.found}`, contradiction.expected)
    if (value.status !== 'pending') return
    walk.unlessUnreadable(() => {
      if (scans.pending(organizationId)?.id !== value.id)
        wrong(`the pending scan ${value.id} without its request`, 'one')
    })
  })
  end()
}

/** Returns a property of a scan that contradicts its status. */
function contradictionOf(scan: Scan): { readonly found: string; readonly expected: string } | undefined {
  const { status, startedAtMs, completedAtMs, failure } = scan
  const times = `started at ${startedAtMs} and ended at ${completedAtMs}`
  switch (status) {
    case 'pending':
      return startedAtMs === 0 && completedAtMs === 0 ? undefined : { found: times, expected: 'neither' }
    case 'running':
      return startedAtMs > 0 && completedAtMs === 0 ? undefined : { found: times, expected: 'started and not ended' }
    case 'completed':
    case 'failed': {
      const isFailed = status === 'failed'
      if (!(startedAtMs > 0 && completedAtMs >= startedAtMs))
        return { found: times, expected: 'an end after the start' }
      if ((failure !== '') === isFailed) return undefined
      return { found: `with the reason ${JSON.stringify(failure)}`, expected: isFailed ? 'a reason' : 'none' }
    }
    default:
      status satisfies never
      return { found: `of status ${status}`, expected: 'pending, running, completed or failed' }
  }
}

function checkRequests(walk: StoreWalk): void {
  const form = { keyBytes: UUID_BYTES, open: packed<ScanRequest>('scan request') }
  walk.table('scan-requests', form, ({ value, organizationId }) => {
    walk.unlessUnreadable(() => {
      const status = walk.store.scans.pending(organizationId)?.status
      if (status === 'pending') return
      walk.wrong('scan-requests', organizationId, `a request of scan ${value.scanId}, ${status ?? 'gone'}`, 'pending')
    })
  })
}

function checkStates(walk: StoreWalk): void {
  const form = { keyBytes: UUID_BYTES, open: packed<ScanState>('scan state') }
  walk.table('scan-states', form, ({ value, organizationId }) => {
    const { generation, stored, scheduledAtMs, firstDay } = value
    if (![generation, stored, scheduledAtMs, firstDay].every((count) => Number.isSafeInteger(count) && count >= 0)) {
      const found = `generation ${generation}, ${stored} stored, ${scheduledAtMs}, ${firstDay}`
      walk.wrong('scan-states', organizationId, found, 'whole numbers')
    }
    walk.unlessUnreadable(() => {
      // If there are scans, they were counted with the scans.
      if (stored === 0 || walk.store.scans.last(organizationId, () => true) !== undefined) return
      walk.wrong('scan-states', organizationId, `${stored} stored scans`, '0')
    })
  })
}
