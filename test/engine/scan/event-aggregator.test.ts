import t from 'tap'
import { type Event, eventId, METHODS, packEvent } from '../../../engine/kernel/event/event.ts'
import type { ChunkView } from '../../../engine/kernel/lmdb/queue.ts'
import { DAY_MS, dayOf } from '../../../engine/kernel/process/clock.ts'
import { EVIDENCE_CELLS_MAX } from '../../../engine/limits.ts'
import { domainStrength, METHOD_WEIGHT } from '../../../engine/scan/confidence.ts'
import { EventAggregator } from '../../../engine/scan/event-aggregator.ts'
import { NAMES_MAX } from '../../../engine/scan/event-tables.ts'
import { Evidence } from '../../../engine/scan/evidence.ts'
import { SOURCES_PER_DAY_MAX } from '../../../engine/store/event-source.ts'
import { type DayEvidence, NAMES_PER_DAY_MAX } from '../../../engine/store/evidence.ts'
import { loadCatalog, type Rule } from '../../../registry/catalog.ts'
import { type AccessKind, accessOf } from '../../../registry/contact.ts'
import { ruleOfName } from '../../../registry/infer-role.ts'
import * as fc from '../../support/property.ts'
import { matcher, NOON, Sender } from '../../support/store.ts'

const RULES = loadCatalog().rules.filter(({ match }) => match === 'suffix')
/** Rules for use, and then the same number of rules for other purposes. */
const MIXED_RULES = [true, false].flatMap((isUse) =>
  RULES.filter(({ purpose }) => (purpose === 'use') === isUse).slice(0, isUse ? 30 : 10),
)
const aggregator = new EventAggregator()

/** A chunk of the buffer with these events, at offset `before` in its memory. */
function chunkOf(entries: readonly Uint8Array[], from = 0, before = 0): ChunkView {
  const bytes = Buffer.concat([Buffer.alloc(before, 0xee), ...entries])
  const starts = new Uint32Array(entries.length)
  const ends = new Uint32Array(entries.length)
  let at = before
  for (const [index, entry] of entries.entries()) {
    starts[index] = at
    at += entry.length
    ends[index] = at
  }
  const slices = { bytes, starts, ends, count: entries.length }
  return { sequence: 1 + from, from, end: 1 + entries.length, damaged: false, slices }
}

function aggregated(): Map<string, DayEvidence> {
  return new Map(
    Array.from(aggregator.days(), ({ day, platformId, addTo, instances }) => {
      const evidence = new Evidence()
      addTo(evidence)
      for (const [instance, matches] of instances()) evidence.addSource(instance, matches)
      return [`${day} ${platformId}`, evidence.toDay()]
    }),
  )
}

/**
 * The reference sum, computed without optimization. Clients are counted by their text, up to the
 * exact limit.
 */
function plainlyAggregated(events: readonly Event[]): Map<string, Record<string, unknown>> {
  const days = new Map<string, { readonly event: Event; readonly rule: Rule }[]>()
  /** Those whose matches are counted. */
  const instances = new Set<string>()
  for (const event of events) {
    const matched = matcher.match(event.name)
    if (matched === undefined) continue
    if (instances.size < SOURCES_PER_DAY_MAX) instances.add(instanceOf(event))
    const key = `${dayOf(event.lastSeenMs)} ${matched.platform.id}`
    days.set(key, [...(days.get(key) ?? []), { event, rule: ruleOfName(matched, event.name) }])
  }
  return new Map(
    [...days].map(([key, matches]) => {
      type Match = (typeof matches)[number]
      const sums = (
        labelOf: (match: Match) => string | undefined,
        countOf: (match: Match) => number = ({ event }) => event.count,
      ) => {
        const counts: Record<string, number> = {}
        for (const match of matches) {
          const label = labelOf(match)
          const count = countOf(match)
          if (label !== undefined && count > 0) counts[label] = (counts[label] ?? 0) + count
        }
        return counts
      }
      const bytesOf = (key: 'bytesSent' | 'bytesReceived') => {
        const sum = matches.reduce((bytes, { event }) => bytes + (event[key] ?? 0), 0)
        return sum > 0 ? { [key]: sum } : {}
      }
      const usedOf = ({ event, rule }: Match): number =>
        accessOf(rule) === undefined ? 0 : event.count - (event.blocked ?? 0)
      const uses = matches.filter((match) => usedOf(match) > 0)
      const clientsOf = (kinds: readonly AccessKind[]) =>
        new Set(uses.flatMap(({ event, rule }) => (kinds.includes(accessOf(rule) ?? 'tool') ? event.client : []))).size
      const timed = uses.length > 0 ? uses : matches
      return [
        key,
        {
          firstSeenMs: Math.min(...timed.map(({ event }) => event.firstSeenMs)),
          lastSeenMs: Math.max(
            ...timed.map((match) => {
              const { firstSeenMs, lastSeenMs, blocked = 0 } = match.event
              const isMixed = blocked > 0 && usedOf(match) > 0
              return isMixed ? Math.max(firstSeenMs, dayOf(lastSeenMs) * DAY_MS) : lastSeenMs
            }),
          ),
          matches: matches.reduce((sum, { event }) => sum + event.count, 0),
          used: matches.reduce((sum, match) => sum + usedOf(match), 0),
          blocked: matches.reduce((sum, { event }) => sum + (event.blocked ?? 0), 0),
          byMethod: sums(({ event }) => event.method),
          bySource: sums(({ event }) => (instances.has(instanceOf(event)) ? instanceOf(event) : undefined)),
          byRole: sums(({ rule }) => rule.role),
          byPurpose: sums(({ rule }) => rule.purpose),
          byAccess: sums(({ rule }) => accessOf(rule), usedOf),
          byName: sums(({ event }) => event.name),
          otherNames: 0,
          ...bytesOf('bytesSent'),
          ...bytesOf('bytesReceived'),
          domainStrength: Math.max(
            0,
            ...uses.map(({ event, rule }) => domainStrength(rule.specificity, METHOD_WEIGHT[event.method])),
          ),
          specificity: Math.max(0, ...uses.map(({ rule }) => rule.specificity)),
          clients: new Set(uses.map(({ event }) => event.client)).size,
          interactive: clientsOf(['web', 'app']),
          api: clientsOf(['api']),
        },
      ]
    }),
  )
}

function instanceOf({ id }: Event): string {
  return id.slice(0, 16)
}

const anyEvent = fc
  .record({
    rule: fc.nat(MIXED_RULES.length - 1),
    host: fc.constantFrom(
      '',
      'api.',
      'otel.',
      'cdn2.eu.',
      'a-long-host-name-of-more-than-31-bytes-and-a-string-header-of-two.',
    ),
    client: fc.constantFrom(
      '10.0.0.1',
      '10.0.0.2',
      '2001:db8::1',
      '192.168.200.200',
      '2001:db8:1234:5678:9abc:def0:1234:5678',
    ),
    method: fc.constantFrom(...METHODS),
    ageMs: fc.nat(3 * DAY_MS),
    spanMs: fc.constantFrom(0, 1, 200, 70_000, DAY_MS),
    count: fc.constantFrom(1, 127, 128, 255, 256, 65_536, 0xffff_ffff),
    share: fc.constantFrom(0, 0, 0.5, 1),
    optional: fc.constantFrom(
      {},
      { user: 'CN=Jürgen' },
      { bytesSent: 10 ** 15 - 1 },
      { user: 'jdoe', bytesReceived: 70_000 },
    ),
    known: fc.integer({ min: 0, max: 9 }),
    instance: fc.oneof(fc.nat(2), fc.nat(60)),
  })
  .map(({ instance, rule, host, client, method, ageMs, spanMs, count, share, optional, known }): Event => {
    const lastSeenMs = NOON - ageMs
    const blocked = Math.floor(count * share)
    return {
      ...new Sender().event(known === 0 ? 'left-the-registry.example' : host + MIXED_RULES[rule]?.domain, NOON),
      ...{ client, method, firstSeenMs: lastSeenMs - spanMs, lastSeenMs, count },
      id: eventId(`${instance.toString(16).padStart(8, 'f')}${instance.toString(16).padStart(8, '0')}`, 1),
      ...(blocked > 0 ? { blocked } : {}),
      ...optional,
    }
  })

t.test('columns equal the reference sum, however the events are split into chunks', async (t) => {
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 60 }), fc.nat(60), fc.nat(9), (events, cut, before) => {
      aggregator.clear(matcher)
      const packed = events.map(packEvent)
      aggregator.addChunk(chunkOf(packed.slice(0, cut), 0, before))
      aggregator.addChunk(chunkOf(packed.slice(cut), 0, before))
      const found = [...aggregated()].map(([key, { interactiveClients, apiClients, ...day }]) => {
        const sum = new Evidence()
        sum.addDay({ ...day, ...(interactiveClients && { interactiveClients }), ...(apiClients && { apiClients }) })
        const [interactive, api] = [sum.interactive.estimate, sum.api.estimate]
        return [key, { ...day, clients: (day.clients.length - 1) / 4, interactive, api }] as const
      })
      t.same(Object.fromEntries(found), Object.fromEntries(plainlyAggregated(events)))
      t.equal(aggregator.added, events.length)
      t.equal(aggregator.unmatched, events.filter(({ name }) => matcher.match(name) === undefined).length)
      return true
    }),
    { numRuns: 300 },
  )
})

t.test('events removed from the queue are not counted again', async (t) => {
  aggregator.clear(matcher)
  const sender = new Sender()
  const packed = Array.from({ length: 5 }, () => packEvent(sender.event('claude.ai', NOON)))
  t.equal(aggregator.addChunk(chunkOf(packed, 3)), 6)
  t.equal(aggregator.added, 2)
})

t.test('invalid events, and chunks with a wrong checksum, are counted and skipped', async (t) => {
  const good = packEvent(new Sender().event('claude.ai', NOON))
  const full = packEvent(new Sender().event('claude.ai', NOON, { user: 'jdoe', bytesSent: 5 }))
  for (const [name, bytes] of [
    ['empty', Buffer.alloc(0)],
    ['one byte', Buffer.from([0x97])],
    ['text', Buffer.from('hello, I am no event of any kind at all')],
    ['cut', good.subarray(0, good.length - 1)],
    ['cut in the name', good.subarray(0, 24)],
    ['too long', Buffer.concat([good, Buffer.from([1])])],
    ['cut in the user', full.subarray(0, full.length - 4)],
    ['with a user and too long', Buffer.concat([full, Buffer.from([1])])],
    ['a user longer than the event', Buffer.from(full).fill(0xbf, full.length - 7, full.length - 6)],
    ['a method that is none', Buffer.from(good).fill(9, good.length - 12, good.length - 11)],
  ] as const) {
    aggregator.clear(matcher)
    t.equal(aggregator.addChunk(chunkOf([bytes, good])), 3, name)
    t.same([aggregator.added, aggregator.damaged], [1, 1], name)
  }
  aggregator.clear(matcher)
  t.equal(aggregator.addChunk({ ...chunkOf([good]), end: 8, damaged: true }), 8)
  t.equal(aggregator.damaged, 7)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), fc.nat(80), (noise, at) => {
      const bytes = Buffer.from(at % 2 === 0 ? good : full)
      bytes.set(noise.subarray(0, Math.max(0, bytes.length - at)), Math.min(at, bytes.length))
      aggregator.clear(matcher)
      aggregator.addChunk(chunkOf([bytes, noise]))
      return aggregator.added + aggregator.damaged === 2
    }),
    { numRuns: 5000 },
  )
})

t.test('an aggregator without space for another name stops before the event that needs it', async (t) => {
  aggregator.clear(matcher)
  const sender = new Sender()
  const entries = Array.from({ length: NAMES_MAX + 100 }, (_, index) =>
    packEvent(sender.event(`h${index}.claude.ai`, NOON, { count: 2 })),
  )
  let taken = 0
  while (taken < entries.length) {
    const chunk = entries.slice(taken, taken + 256)
    const next = aggregator.addChunk(chunkOf(chunk))
    taken += next - 1
    if (next - 1 < chunk.length) break
  }
  t.equal(taken, NAMES_MAX)
  t.equal(aggregator.addChunk(chunkOf(entries.slice(0, 256))), 257, 'known names have space')
  const [day] = [...aggregated().values()]
  t.equal(day?.matches, (NAMES_MAX + 256) * 2)
  t.equal(Object.keys(day?.byName ?? {}).length, NAMES_PER_DAY_MAX)
  t.same(day?.byRole, { web: (NAMES_MAX + 256) * 2 })
})

t.test('an aggregator without space for another platform and day stops before the event that needs it', async (t) => {
  aggregator.clear(matcher)
  const platforms = [...new Map(RULES.map((rule) => [rule.platform.id, rule])).values()]
  const sender = new Sender()
  const daysEach = Math.ceil(EVIDENCE_CELLS_MAX / platforms.length) + 1
  const events = platforms.flatMap(({ domain }) => {
    return Array.from({ length: daysEach }, (_, day) => sender.event(domain, NOON - day * DAY_MS))
  })
  const cells = new Set(
    events.map(({ name, lastSeenMs }) => `${dayOf(lastSeenMs)} ${matcher.match(name)?.platform.id}`),
  )
  t.ok(cells.size > EVIDENCE_CELLS_MAX, `${cells.size}`)
  let taken = 0
  for (let from = 0; from < events.length; from += 256) {
    const entries = events.slice(from, from + 256).map(packEvent)
    const next = aggregator.addChunk(chunkOf(entries))
    taken += next - 1
    if (next - 1 < entries.length) break
  }
  t.equal(aggregator.added, taken)
  t.equal(aggregated().size, EVIDENCE_CELLS_MAX)
})
