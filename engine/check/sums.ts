import { createHash } from 'node:crypto'
import { ASSESSED_LISTS, elementsOf } from '../assess/publish.ts'
import { dayOf } from '../kernel/process/clock.ts'
import { CLIENTS_PER_DAY_MAX, DECISIONS_KEPT_MAX } from '../limits.ts'
import { isSketch } from '../scan/distinct-clients.ts'
import { isCountOf } from '../scan/use-count.ts'
import { type ClientTotals, openClients } from '../store/client-days.ts'
import { ClientReader } from '../store/client-records.ts'
import { type ClientSummary, DAY_NUMBERS, numbersOf, type SummaryTotals } from '../store/client-summaries.ts'
import type { DayUse } from '../store/daily-use.ts'
import type { Decision, LastDecision } from '../store/decisions.ts'
import { type DayEvidence, NAMES_PER_DAY_MAX } from '../store/evidence.ts'
import type { HistoryDay } from '../store/history.ts'
import { textKey, UUID_BYTES, u32Bytes, u64Bytes, uuidBytes } from '../store/keys.ts'
import { PublishedList, packList, tagOf } from '../store/published.ts'
import type { ScanState } from '../store/scan-states.ts'
import type { Scan } from '../store/scans.ts'
import { lastOf, PAGE_RANGES_MAX, type StoredSeen, type StoredSeenPage } from '../store/seen-instance.ts'
import type { StoredSource } from '../store/sources.ts'
import { type Form, packed, type StoreWalk, type Wrong } from './walk.ts'

const DAY_AT = UUID_BYTES
const DAY_BYTES = 4
const INSTANCE_KEY_BYTES = UUID_BYTES + 8
const SENDER_HASH_BYTES = 16

/** Checks numbers that are stored twice: sums, counts and orders that several records share. */
export function checkSums(walk: StoreWalk): void {
  checkSeen(walk)
  checkSources(walk)
  checkEvidence(walk)
  checkDailyUse(walk)
  checkHistory(walk)
  checkScans(walk)
  checkClients(walk)
  checkSummaries(walk)
  checkDecisions(walk)
  checkLists(walk)
}

/** The record at the beginning of the key: that of its organization, or of its instance. */
const atPrefix =
  (table: string, bytes: number) =>
  (_value: unknown, key: Buffer): readonly (readonly [string, Buffer])[] => [[table, key.subarray(0, bytes)]]

/** The pages of an instance follow each other, and its head says how many there are. */
function checkSeen(walk: StoreWalk): void {
  let pages = { instance: '', count: 0, last: 0 }
  const counted = new Map<string, typeof pages>()
  const page: Form<StoredSeenPage> = {
    open: packed('page of seen events'),
    keyBytes: INSTANCE_KEY_BYTES + 8,
    needs: atPrefix('seen', INSTANCE_KEY_BYTES),
  }
  walk.table('seen-pages', page, ({ key, value }, wrong) => {
    const instance = key.toString('hex', 0, INSTANCE_KEY_BYTES)
    if (pages.instance !== instance) pages = { instance, count: 0, last: 0 }
    const last = lastOf(key)
    checkRanges(value.ranges, pages.last, last, wrong)
    pages.count++
    pages.last = last
    counted.set(instance, pages)
  })
  const head = { open: packed<StoredSeen>('seen events'), keyBytes: INSTANCE_KEY_BYTES }
  walk.table('seen', head, ({ key, value }, wrong) => {
    const { ranges, pages: stored = 0, pagesThrough = 0, lateThrough = 0 } = value
    checkRanges(ranges, pagesThrough, Number.MAX_SAFE_INTEGER, wrong)
    const { count, last } = counted.get(key.toString('hex')) ?? { count: 0, last: lateThrough }
    if (stored !== count || pagesThrough !== last)
      wrong(`${stored} pages through ${pagesThrough}`, `${count} through ${last}`)
  })
}

/** All ranges of a head or page are after `after`, and up to `last`. They ascend, with gaps between them. */
function checkRanges(ranges: readonly number[], after: number, last: number, wrong: Wrong): void {
  const isRight = (bound: number, at: number): boolean => {
    const before = ranges[at - 1] ?? after
    return Number.isSafeInteger(bound) && (at % 2 === 1 ? bound >= before : bound > before + (at === 0 ? 0 : 1))
  }
  const isEven = ranges.length > 0 && ranges.length % 2 === 0 && ranges.length <= 2 * PAGE_RANGES_MAX
  if (!isEven || !ranges.every(isRight) || (ranges.at(-1) ?? 0) > last)
    wrong(`the ranges ${ranges.slice(0, 6).join(' ')}`, `pairs that ascend from ${after} to ${last}`)
}

/**
 * Compares sums of a token per listener, not rows: a message may be received in a sender's own row
 * and counted later in a shared one. Messages in transit to the disk when the service was killed
 * were received but never counted.
 */
function checkSources(walk: StoreWalk): void {
  const form = {
    open: packed<StoredSource>('source'),
    mayBeUnattributed: true,
    keyOf: ({ organizationId, tokenId, listener, address, host }: StoredSource): Buffer => {
      const sender = createHash('sha256').update(`${listener}\n${address}\n${host}`).digest()
      return Buffer.concat([uuidBytes(organizationId), uuidBytes(tokenId), sender.subarray(0, SENDER_HASH_BYTES)])
    },
  }
  let token = { id: '', organizationId: '', uncounted: new Map<string, number>() }
  const end = (): void => {
    for (const [listener, messages] of token.uncounted)
      if (!(messages >= 0))
        walk.wrong('sources', token.organizationId, `${messages} messages of ${listener} not counted`, '0 or more')
  }
  walk.table('sources', form, ({ value: { tokenId, listener, received, counts }, organizationId }) => {
    if (token.organizationId !== organizationId || token.id !== tokenId) {
      end()
      token = { id: tokenId, organizationId, uncounted: new Map() }
    }
    token.uncounted.set(listener, (token.uncounted.get(listener) ?? 0) + received - sumOf(counts))
  })
  end()
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0)
}

function checkEvidence(walk: StoreWalk): void {
  const form = { open: packed<DayEvidence | Omit<DayEvidence, 'used'>>('evidence') }
  walk.table('evidence', form, ({ key, value }, wrong) => {
    const { matches, blocked, byMethod, byRole, byPurpose, byAccess, byName, bySource = {}, otherNames } = value
    const { firstSeenMs, lastSeenMs, domainStrength, specificity } = value
    const day = key.readUInt32BE(DAY_AT)
    const at = `${key.toString('utf8', DAY_AT + DAY_BYTES)} on day ${day}`
    const of = (counts: Readonly<Record<string, number>>): number => sumOf(Object.values(counts))
    const used = 'used' in value ? value.used : (byPurpose.use ?? 0)
    const names = of(byName) + otherNames
    const equal = { methods: of(byMethod), roles: of(byRole), purposes: of(byPurpose), names }
    for (const [what, sum] of Object.entries(equal))
      if (sum !== matches) wrong(`${sum} matches by ${what} of ${at}`, `${matches}`)
    for (const [what, sum] of Object.entries({ used, blocked, 'by source': of(bySource) }))
      if (!(sum >= 0 && sum <= matches)) wrong(`${sum} matches ${what} of ${at}`, `0 to ${matches}`)
    if (of(byAccess) > used) wrong(`${of(byAccess)} matches by access of ${at}`, `at most the ${used} used ones`)
    if (Object.keys(byName).length > NAMES_PER_DAY_MAX) wrong(`more names of ${at}`, `${NAMES_PER_DAY_MAX}`)
    if (!(firstSeenMs <= lastSeenMs && dayOf(lastSeenMs) === day))
      wrong(`the times ${firstSeenMs} to ${lastSeenMs} of ${at}`, 'an end on that day, not before the beginning')
    if (domainStrength > 0 !== used > 0 || specificity < domainStrength)
      wrong(`the strength ${domainStrength} of ${at}`, used > 0 ? `more than 0, up to ${specificity}` : '0')
    for (const sketch of [value.clients, value.interactiveClients, value.apiClients])
      if (sketch !== undefined && !isSketch(sketch))
        wrong(`a sketch of ${sketch.length} bytes of ${at}`, 'one of its two forms')
  })
}

function checkDailyUse(walk: StoreWalk): void {
  const form = { open: packed<readonly DayUse[]>('daily use'), keyBytes: UUID_BYTES }
  walk.table('daily-use', form, ({ value }, wrong) => {
    for (const [at, use] of value.entries()) {
      const { day, approved, notApproved, sketches } = use
      const counts = `${approved} and ${notApproved} clients on day ${day}`
      if (day <= (value[at - 1]?.day ?? -1)) wrong(`day ${day} after day ${value[at - 1]?.day}`, 'days in order')
      if (!(approved >= 0 && notApproved >= 0)) wrong(counts, 'counts')
      if (sketches !== undefined && (at !== value.length - 1 || !isCountOf(sketches, use)))
        wrong(counts, 'those of its sketches')
    }
  })
}

function checkHistory(walk: StoreWalk): void {
  const form = {
    open: packed<HistoryDay>('history of scans'),
    keyOf: ({ completedAtMs }: HistoryDay, organizationId: string) =>
      Buffer.concat([uuidBytes(organizationId), u32Bytes(dayOf(completedAtMs))]),
  }
  walk.table('history', form, ({ value: { completedAtMs, summary, platforms } }, wrong) => {
    const { platformsDiscovered, aiCapableCount, blockedCount = 0, touchedCount = 0 } = summary
    const ai = platforms.filter(({ use }) => use === 'ai').length
    const others = platforms.length - ai
    const expected = [platformsDiscovered, aiCapableCount + blockedCount + touchedCount]
    if (ai !== expected[0] || others !== expected[1])
      wrong(`${ai} AI platforms and ${others} others in the scan of ${completedAtMs}`, expected.join(' and '))
  })
}

function checkScans(walk: StoreWalk): void {
  const counts = new Map<string, { stored: number; pending: number; running: number }>()
  const form = {
    open: packed<Scan>('scan'),
    needs: atPrefix('scan-states', UUID_BYTES),
    keyOf: ({ organizationId, requestedAtMs, id }: Scan) =>
      Buffer.concat([uuidBytes(organizationId), u64Bytes(requestedAtMs), uuidBytes(id)]),
  }
  walk.table('scans', form, ({ value, organizationId }, wrong) => {
    const count = counts.get(organizationId) ?? { stored: 0, pending: 0, running: 0 }
    counts.set(organizationId, count)
    const { id, status, startedAtMs, completedAtMs, failure } = value
    count.stored++
    if (status === 'pending' || status === 'running') count[status]++
    const hasEnded = status === 'completed' || status === 'failed'
    const isRight =
      startedAtMs > 0 === (status !== 'pending') &&
      (hasEnded ? completedAtMs >= startedAtMs : completedAtMs === 0) &&
      (failure !== '') === (status === 'failed')
    if (!isRight)
      wrong(
        `the ${status} scan ${id} from ${startedAtMs} to ${completedAtMs}, ${JSON.stringify(failure)}`,
        'times and a reason of that status',
      )
    if (status === 'pending' && walk.store.scans.pending(organizationId)?.id !== id)
      wrong(`the pending scan ${id} without its request`, 'one')
  })
  for (const [organizationId, { pending, running }] of counts)
    if (pending > 1 || running > 1)
      walk.wrong('scans', organizationId, `${pending} pending scans and ${running} running ones`, 'one of each at most')
  const state = { open: packed<ScanState>('scan state'), keyBytes: UUID_BYTES }
  walk.table('scan-states', state, ({ value: { stored }, organizationId }, wrong) => {
    const found = counts.get(organizationId)?.stored ?? 0
    if (stored !== found) wrong(`${stored} stored scans`, `${found}`)
  })
}

function checkClients(walk: StoreWalk): void {
  const { evidence } = walk.store
  const sizes = new Map<string, { records: number; bytes: number }>()
  walk.table(
    'clients',
    { open: openClients, needs: atPrefix('client-totals', UUID_BYTES) },
    ({ key, value, bytes, organizationId }, wrong) => {
      const size = sizes.get(organizationId) ?? { records: 0, bytes: 0 }
      sizes.set(organizationId, size)
      size.records++
      size.bytes += bytes.length
      const day = key.readUInt32BE(DAY_AT)
      const platform = key.toString('utf8', DAY_AT + DAY_BYTES)
      const at = `${platform} on day ${day}`
      const reader = new ClientReader(value, day)
      const seen = new Set<string>()
      let matches = reader.otherMatches
      while (reader.next() && seen.size <= CLIENTS_PER_DAY_MAX) {
        const client = `${reader.client} ${reader.user}`
        if (seen.has(client)) wrong(`the client ${client} twice in ${at}`, 'once')
        seen.add(client)
        matches += reader.matches
        if (dayOf(reader.lastSeenMs) !== day) wrong(`the time ${reader.lastSeenMs} in ${at}`, 'one of that day')
      }
      // All of them may have been erased.
      const isEmpty = seen.size === 0 && reader.otherMatches === 0
      if (isEmpty || seen.size > CLIENTS_PER_DAY_MAX)
        wrong(`${seen.size} clients of ${at}`, `1 to ${CLIENTS_PER_DAY_MAX}`)
      const all = evidence.day(organizationId, day, platform)?.matches
      if (all !== undefined && matches > all) wrong(`${matches} matches by client of ${at}`, `at most ${all}`)
    },
  )
  const totals = { open: packed<ClientTotals>('size of client records'), keyBytes: UUID_BYTES }
  walk.table('client-totals', totals, ({ value: { records, bytes }, organizationId }, wrong) => {
    const found = sizes.get(organizationId) ?? { records: 0, bytes: 0 }
    if (records !== found.records || bytes !== found.bytes)
      wrong(`${records} records of ${bytes} bytes`, `${found.records} of ${found.bytes}`)
  })
}

function checkSummaries(walk: StoreWalk): void {
  const counts = new Map<string, number>()
  const form = {
    open: packed<ClientSummary>('summary of a client'),
    needs: atPrefix('client-summary-totals', UUID_BYTES),
    keyOf: ({ client, isUser }: ClientSummary, organizationId: string) =>
      textKey(organizationId, `${isUser ? 'u' : 'a'}${client}`),
  }
  walk.table('client-summaries', form, ({ value, organizationId }, wrong) => {
    counts.set(organizationId, (counts.get(organizationId) ?? 0) + 1)
    const { client, days, platformIds, platformDays } = value
    const platforms = platformIds === '' ? 0 : platformIds.split(' ').length
    if (platforms !== platformDays.length)
      wrong(`${platformDays.length} days of ${client}`, `one for each of ${platforms} platforms`)
    const { firstDay = 0 } = walk.store.clientSummaries.totals(organizationId) ?? {}
    if (days.length === 0 || !areDays(days, firstDay)) wrong(`the days of ${client}`, `days in order from ${firstDay}`)
  })
  const totals = { open: packed<SummaryTotals>('totals of clients'), keyBytes: UUID_BYTES }
  walk.table('client-summary-totals', totals, ({ value: { clients, others }, organizationId }, wrong) => {
    const found = counts.get(organizationId) ?? 0
    if (clients !== found) wrong(`${clients} clients`, `${found}`)
    if (!areDays(others, 0)) wrong('the days of others', 'days in order')
  })
}

function areDays(days: ClientSummary['days'], firstDay: number): boolean {
  const numbers = numbersOf(days)
  const order = numbers.filter((_, at) => at % DAY_NUMBERS === 0)
  return (
    numbers.length % DAY_NUMBERS === 0 &&
    numbers.every((number) => Number.isSafeInteger(number) && number >= 0) &&
    order.every((day, at) => day >= firstDay && (at === 0 || day > (order[at - 1] ?? 0)))
  )
}

/** The last decisions are those of the history, which has the last ones of each platform. */
function checkDecisions(walk: StoreWalk): void {
  const { decisions } = walk.store
  const form = { open: packed<Readonly<Record<string, LastDecision>>>('last decisions'), keyBytes: UUID_BYTES }
  walk.table('decisions', form, ({ value, organizationId }, wrong) => {
    const kept = decisions.ofPlatforms(organizationId, Object.keys(value))
    for (const [platformId, { kind, plan, expiresAtMs, decidedAtMs, sequence }] of Object.entries(value)) {
      const found = kept.get(platformId)
      const isSame =
        found?.kind === kind &&
        found.plan === plan &&
        found.expiresAtMs === expiresAtMs &&
        found.decidedAtMs === decidedAtMs
      if (!isSame) wrong(`decision ${sequence} about ${platformId}`, 'the one of the history')
    }
  })
  // The records of an organization follow each other, so its last decisions are read once.
  let last = { organizationId: '', decisions: new Map<string, LastDecision>() }
  const history = {
    open: packed<Decision>('decision'),
    keyOf: ({ platformId, sequence }: Decision, organizationId: string) =>
      Buffer.concat([textKey(organizationId, `${platformId}\0`), u64Bytes(sequence)]),
  }
  walk.table('decision-history', history, ({ value: { platformId, sequence }, organizationId }, wrong) => {
    if (last.organizationId !== organizationId) last = { organizationId, decisions: decisions.last(organizationId) }
    const newest = last.decisions.get(platformId)?.sequence ?? 0
    if (sequence > newest || sequence <= newest - DECISIONS_KEPT_MAX)
      wrong(`decision ${sequence} about ${platformId}`, `the ${DECISIONS_KEPT_MAX} up to ${newest}`)
  })
}

/** The API shows what the records of assessments say. One organization at a time: its lists are bounded. */
function checkLists(walk: StoreWalk): void {
  const { store } = walk
  for (const organizationId of store.organizations.ids()) {
    for (const list of ASSESSED_LISTS) {
      walk.unlessUnreadable(() => {
        const head = store.published.head(organizationId, PublishedList[list])
        const elements = elementsOf(store, organizationId, list)
        // The API returns an unpublished list as empty.
        if (head === undefined && elements.length === 0) return
        if (head?.tag === tagOf(packList(PublishedList[list], '', elements))) return
        walk.wrong(
          'published',
          organizationId,
          `${head?.count ?? 0} of ${list}`,
          `the ${elements.length} in the records`,
        )
      })
    }
  }
}
