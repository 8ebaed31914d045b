import { READ_METHODS } from '../kernel/event/event.ts'
import { dayOf } from '../kernel/process/clock.ts'
import { addressBytes, networkOf } from '../kernel/process/network.ts'
import { CLIENTS_PER_DAY_MAX } from '../limits.ts'
import { type ClientTotals, openClients } from '../store/client-days.ts'
import type { ClientErasure } from '../store/client-erasures.ts'
import type { NamedNetwork } from '../store/client-names.ts'
import { ClientReader } from '../store/client-records.ts'
import {
  type ClientSummary,
  DAY_NUMBERS,
  numbersOf,
  type SummaryDays,
  type SummaryTotals,
} from '../store/client-summaries.ts'
import { UUID_BYTES } from '../store/keys.ts'
import { packed, type StoreWalk } from './walk.ts'

const DAY_BYTES = 4
const ADDRESS_BYTES = 16
const METHODS_ALL = (1 << READ_METHODS.length) - 1

/** The client records of one organization. */
interface RecordsRead {
  readonly organizationId: string
  records: number
  bytes: number
}

/** Checks who used each platform, and the size of these records. */
export function checkClients(walk: StoreWalk): void {
  const { clientDays, evidence } = walk.store
  let read: RecordsRead = { organizationId: '', records: 0, bytes: 0 }
  const end = (): void => {
    if (read.organizationId === '') return
    walk.unlessUnreadable(() => {
      const { records, bytes } = clientDays.totals(read.organizationId)
      if (records === read.records && bytes === read.bytes) return
      const found = `${read.records} records of ${read.bytes} bytes`
      walk.wrong('clients', read.organizationId, found, `${records} of ${bytes}, as in client-totals`)
    })
  }
  const form = { keyBytes: UUID_BYTES + DAY_BYTES, keyIsLonger: true, open: openClients }
  walk.table('clients', form, ({ key, value, bytes, organizationId }) => {
    if (read.organizationId !== organizationId) {
      end()
      read = { organizationId, records: 0, bytes: 0 }
    }
    read.records++
    read.bytes += bytes.length
    const day = key.readUInt32BE(UUID_BYTES)
    const platform = key.toString('utf8', UUID_BYTES + DAY_BYTES)
    const wrong = (found: string, expected: string): void =>
      walk.wrong('clients', organizationId, `${found} of ${platform} on day ${day}`, expected)
    const reader = new ClientReader(value, day)
    const seen = new Set<string>()
    let matches = reader.otherMatches
    while (reader.next()) {
      const client = `${reader.client} ${reader.user}`
      if (seen.has(client)) wrong(`the client ${client} twice`, 'once')
      seen.add(client)
      matches += reader.matches
      if (!(reader.matches >= 1)) wrong(`${reader.matches} matches of a client`, 'a whole number from 1')
      if (reader.methods < 1 || reader.methods > METHODS_ALL) wrong(`the methods ${reader.methods}`, 'known ones')
      if (dayOf(reader.lastSeenMs) !== day) wrong(`the last time ${reader.lastSeenMs}`, 'one of that day')
      if (seen.size > CLIENTS_PER_DAY_MAX) break
    }
    if (seen.size === 0 || seen.size > CLIENTS_PER_DAY_MAX) wrong(`${seen.size} clients`, `1 to ${CLIENTS_PER_DAY_MAX}`)
    walk.unlessUnreadable(() => {
      const all = evidence.day(organizationId, day, platform)?.matches
      if (all !== undefined && matches > all) wrong(`${matches} matches by client`, `at most ${all}`)
    })
  })
  end()
  const erasures = { keyBytes: UUID_BYTES, open: packed<ClientErasure>('erasure of clients') }
  walk.table('client-erasures', erasures, ({ value, organizationId }) => {
    const { sketchKey, bufferNext, bufferEnd, unmatchedNext, unmatchedEnd, auditNext, auditEnd } = value
    const sequences = [bufferNext, bufferEnd, unmatchedNext, unmatchedEnd, auditNext, auditEnd]
    if (/^[0-9a-f]{32}$/.test(sketchKey) && sequences.every(Number.isSafeInteger)) return
    walk.wrong('client-erasures', organizationId, `the sequences ${sequences.join(', ')}`, 'whole numbers, and a key')
  })
  const hosts = { keyBytes: UUID_BYTES + ADDRESS_BYTES, open: packed<{ address: string }>('name of a client') }
  walk.table('client-names', hosts, ({ key, value, organizationId }) => {
    if (key.subarray(UUID_BYTES).equals(addressBytes(value.address) ?? Buffer.alloc(0))) return
    walk.wrong('client-names', organizationId, `the name of ${value.address}`, 'one of the address in its key')
  })
  const networks = { keyBytes: UUID_BYTES + ADDRESS_BYTES + 1, open: packed<NamedNetwork>('named network') }
  walk.table('client-networks', networks, ({ key, value, organizationId }) => {
    const { bytes, prefixBits } = networkOf(value.network) ?? { bytes: [], prefixBits: -1 }
    if (key.subarray(UUID_BYTES).equals(Buffer.from([...bytes, prefixBits]))) return
    walk.wrong('client-networks', organizationId, `the name of ${value.network}`, 'one of the network in its key')
  })
  checkSummaries(walk)
  const totals = { keyBytes: UUID_BYTES, open: packed<ClientTotals>('size of client records') }
  walk.table('client-totals', totals, ({ value, organizationId }) => {
    const { records, bytes, removed } = value
    if ([records, bytes, removed].every((count) => Number.isSafeInteger(count) && count >= 0)) return
    walk.wrong(
      'client-totals',
      organizationId,
      `${records} records, ${bytes} bytes, ${removed} removed`,
      'whole numbers',
    )
  })
}

/** Checks the summary of each client, and their number. */
function checkSummaries(walk: StoreWalk): void {
  const counts = new Map<string, number>()
  const form = { keyBytes: UUID_BYTES, keyIsLonger: true, open: packed<ClientSummary>('summary of a client') }
  walk.table('client-summaries', form, ({ key, value, organizationId }) => {
    counts.set(organizationId, (counts.get(organizationId) ?? 0) + 1)
    const { client, isUser, days, platformIds, platformDays, firstSeenMs, lastSeenMs } = value
    const wrong = (found: string, expected: string): void =>
      walk.wrong('client-summaries', organizationId, `${found} of the client ${client}`, expected)
    if (key.toString('utf8', UUID_BYTES) !== `${isUser ? 'u' : 'a'}${client}`) wrong('the name', 'the name in its key')
    const platforms = platformIds === '' ? 0 : platformIds.split(' ').length
    if (platforms !== platformDays.length)
      wrong(`${platformDays.length} days`, `one for each of ${platforms} platforms`)
    if (firstSeenMs > lastSeenMs) wrong(`the first time ${firstSeenMs}`, `one before ${lastSeenMs}`)
    if (!areDays(days) || days.length === 0) wrong('the days', 'days in order, with whole numbers')
    walk.unlessUnreadable(() => {
      const { firstDay = 0 } = walk.store.clientSummaries.totals(organizationId) ?? {}
      const [day = 0] = numbersOf(days)
      if (day < firstDay) wrong(`the day ${day}`, `none before ${firstDay}`)
    })
  })
  const totals = { keyBytes: UUID_BYTES, open: packed<SummaryTotals>('totals of clients') }
  walk.table('client-summary-totals', totals, ({ value: { clients, others }, organizationId }) => {
    const found = counts.get(organizationId) ?? 0
    if (clients !== found)
      walk.wrong('client-summaries', organizationId, `${found} clients`, `${clients}, as in their totals`)
    if (!areDays(others)) walk.wrong('client-summary-totals', organizationId, 'the days of others', 'days in order')
  })
}

function areDays(days: SummaryDays): boolean {
  const all = numbersOf(days)
  const isWhole = all.every((number) => Number.isSafeInteger(number) && number >= 0)
  const order = all.filter((_, at) => at % DAY_NUMBERS === 0)
  return isWhole && all.length % DAY_NUMBERS === 0 && order.every((day, at) => at === 0 || day > (order[at - 1] ?? 0))
}
