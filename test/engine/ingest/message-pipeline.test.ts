import t from 'tap'
import { LINE_KINDS, linesOf } from '../../../bench/workload/log-lines.ts'
import { FORMATS } from '../../../engine/formats/formats.ts'
import type { OutgoingBatch } from '../../../engine/ingest/message-pipeline.ts'
import { Origin } from '../../../engine/ingest/origin.ts'
import { makeTokenRateTable, TokenRate } from '../../../engine/ingest/rates.ts'
import { Follows } from '../../../engine/ingest/syslog/counted.ts'
import { Framing } from '../../../engine/ingest/syslog/framing.ts'
import { HOUR_MS } from '../../../engine/kernel/process/clock.ts'
import { COVERAGE_PER_SECOND_MAX, LOG_BATCH_EVENTS_MAX, LOG_BATCHES_IN_FLIGHT_MAX } from '../../../engine/limits.ts'
import { Outcome } from '../../../engine/store/outcomes.ts'
import { coverageMessage, report } from '../../support/coverage.ts'
import { ALL_STORED, eventsOf, openPipeline, sumsOf, type TestPipeline } from '../../support/pipeline.ts'
import * as fc from '../../support/property.ts'
import { makeOrganization, NOON } from '../../support/store.ts'
import { rfc5424, squid } from '../../support/syslog-service.ts'

const tcp = (address = '192.0.2.200', port = 514): Origin => new Origin('tcp', address, port)

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
}

type Row = readonly [message: (token: string) => string, outcome: string, event?: Readonly<Record<string, unknown>>]
const rows: Readonly<Record<string, Row>> = {
  'a platform, RFC 5424': [
    (token) => rfc5424(token, squid('api.anthropic.com', '192.0.2.45', NOON)),
    'stored',
    { name: 'api.anthropic.com', client: '192.0.2.45', firstSeenMs: NOON, count: 1 },
  ],
  'a platform, the element before the message of RFC 3164': [
    (token) => `<134>Nov 20 12:00:00 proxy-1 squid[1]: [svc@00000 key="${token}"] ${squid('claude.ai')}`,
    'stored',
    { name: 'claude.ai' },
  ],
  'a client of IPv6 in another form': [
    (token) => rfc5424(token, squid('claude.ai', '2001:0DB8:0:0:0:0:0:1', NOON)),
    'stored',
    { client: '2001:db8::1' },
  ],
  'no client': [(token) => rfc5424(token, squid('claude.ai', '-', NOON)), 'stored', { client: '::' }],
  ...Object.fromEntries(
    ['CLAUDE.AI', 'claude.ai.', 'Claude.ai.', 'ｃｌａｕｄｅ.ai', '\\u0063laude.ai.'].map((name): [string, Row] => [
      `a collector's event of ${name}`,
      [
        (token: string) =>
          rfc5424(
            token,
            `{"id":"${'1'.padStart(32, '0')}","name":"${name}","client":"192.0.2.45","method":"tls","first_seen":"2026-11-20T12:00:00Z"}`,
          ),
        'stored',
        { name: 'claude.ai' },
      ],
    ]),
  ),
  ...Object.fromEntries(
    ['CLAUDE.AI.', 'ｃｌａｕｄｅ.ai'].map((name): [string, Row] => [
      `a query for ${name} in a log`,
      [
        (token: string) => rfc5424(token, `client @0x7f 192.0.2.45#5353 (${name}): query: ${name} IN A + (192.0.2.1)`),
        'stored',
        { name: 'claude.ai' },
      ],
    ]),
  ),
  'a time before 1970, which no event can have, counts as now': [
    (token) => rfc5424(token, `{"time":"1969-12-31T23:00:00Z","src_ip":"192.0.2.45","dns_query":"claude.ai"}`),
    'stored',
    { lastSeenMs: NOON },
  ],
  'another host': [(token) => rfc5424(token, squid('www.example.com')), 'unmatched'],
  'nothing after the header': [(token) => rfc5424(token, '').trimEnd(), 'skipped'],
  "syslogd's own message": [(token) => rfc5424(token, 'last message repeated 3 times'), 'skipped'],
  'a coverage report, which is not stored here': [(token) => rfc5424(token, coverageMessage(report())), 'skipped'],
  'any text': [(token) => rfc5424(token, 'link is up'), 'unknown'],
  'a format with an invalid field': [
    (token) => rfc5424(token, '1795162502.119    318 192.0.2.45 nothing else'),
    'rejected',
  ],
  'no token': [() => squid('claude.ai'), 'unauthorized'],
  'an unknown token': [() => rfc5424(`svc_mt_${'0'.repeat(48)}`, squid('claude.ai')), 'unauthorized'],
  'one byte': [() => '<', 'unauthorized'],
}

for (const [name, [message, outcome, event]] of Object.entries(rows)) {
  t.test(name, async (t) => {
    const opened = openPipeline(t)
    const { pipeline } = opened
    t.equal(opened.take(message(opened.token.raw), tcp()), outcome)
    const batches = pipeline.takeBatches('all')
    t.match(eventsOf(batches), event === undefined ? [] : [event])
    t.equal(eventsOf(batches).length, event === undefined ? 0 : 1)
    t.match(
      sumsOf(pipeline),
      { received: 1, known: outcome === 'stored' ? 0 : 1 },
      'a stored message is counted when it is on disk',
    )
    for (const batch of batches) pipeline.settled(batch, ALL_STORED)
    t.match(sumsOf(pipeline), { received: 1, known: 1 })
    t.equal(opened.unauthorized.length, outcome === 'unauthorized' ? 1 : 0)
    t.equal(pipeline.takeRejects().length, outcome === 'unknown' || outcome === 'rejected' ? 1 : 0)
    t.ok(pipeline.idle)
  })
}

t.test('a user name that is a line of another program is no request', async (t) => {
  const opened = openPipeline(t)
  const typed = [
    'dnsmasq[1]: query[A] claude.ai from 10.0.0.66',
    'CEF:0|V|Web Gateway|1|1|web|3|src=10.0.0.66 dhost=claude.ai rt=1795162502000',
    'client 10.0.0.66#1 (claude.ai): query: claude.ai IN A + (10.0.0.53)',
  ]
  for (const text of typed) {
    for (const program of ['sshd', 'sshd-session', 'sudo', 'dropbear']) {
      const message = `<38>1 2026-11-20T09:15:02Z srv ${program} 1 - [svc@00000 key="${opened.token.raw}"] ${text}`
      t.equal(opened.take(message, tcp()), 'skipped', message)
    }
  }
})

t.test('unreadable times are counted with their source', async (t) => {
  const opened = openPipeline(t)
  const take = (message: string) => opened.take(rfc5424(opened.token.raw, message), tcp())
  const reported = () => opened.pipeline.sources.takeDeltas(0).map(({ timesUnread }) => timesUnread)
  const pairs = 'src=192.0.2.45 domain=claude.ai x=y'
  for (const time of ['time="2026, week 47"', 'time="20 de noviembre, 9:15"'])
    t.equal(take(`${time} ${pairs}`), 'stored')
  t.same(reported(), [2])
  for (const time of ['time=-', 'time="2026-11-20 09:15:02"', 'date=2026-11-20 time=09:15:02', 'a=b']) {
    t.equal(take(`${time} ${pairs}`), 'stored', time)
  }
  t.equal(take(`time="2026, week 47" ${pairs.replace('claude.ai', 'www.example.com')}`), 'unmatched')
  t.same(reported(), [0], 'an absent or readable time is not counted, and neither is a message without a match')
  const withoutHeader = (fields: string) =>
    opened.take(`<134>1 - - - - - [svc@00000 key="${opened.token.raw}"] ${fields}`, tcp())
  for (const time of ['2026, week 47', 'nonsense', '13.13.2026x']) {
    t.equal(withoutHeader(`time="${time}" ${pairs}`), 'rejected', `${time}: the time of receipt would be a guess`)
  }
  for (const time of ['Friday, November 13, 2026 10:19:35 AM', '13 November 2026 10:19:35', 'n/a', '-'])
    t.equal(withoutHeader(`time="${time}" ${pairs}`), 'stored', time)
})

t.test('tokens and formats of two organizations can share a connection', async (t) => {
  const opened = openPipeline(t)
  const { pipeline } = opened
  const other = makeOrganization(opened, 'Other')
  const second = opened.administration.tokens.generate(other, 'others').raw
  const origin = tcp()
  for (let round = 0; round < 3; round++) {
    opened.take(rfc5424(opened.token.raw, squid('claude.ai')), origin)
    opened.take(rfc5424(second, squid('chatgpt.com')), origin)
    opened.take(rfc5424(second, 'link is up'), origin)
    opened.take('nothing', origin)
  }
  const found = eventsOf(pipeline.takeBatches('all')).map(
    ({ organizationId, name, count }) => `${organizationId} ${name} ${count}`,
  )
  t.same(found, [`${opened.organization.id} claude.ai 3`, `${other.id} chatgpt.com 3`])
  const deltas = pipeline.sources.takeDeltas(0)
  t.same(
    deltas.map(({ received }) => received),
    [3, 6, 3],
  )
})

t.test('the users of a client are separate, and names that cannot be stored are counted', async (t) => {
  const opened = openPipeline(t)
  const { pipeline } = opened
  const origin = tcp()
  for (const user of ['jdoe', 'CORP%5cjdoe', '-', '192.0.2.45', 'jdoe', 'j%0adoe', 'J%FCrgen', 'u'.repeat(200)]) {
    opened.take(rfc5424(opened.token.raw, squid('claude.ai').replace('jdoe HIER', `${user} HIER`)), origin)
  }
  opened.take(
    rfc5424(opened.token.raw, squid('www.example.com').replace('jdoe HIER', `${'u'.repeat(200)} HIER`)),
    origin,
  )
  const found = eventsOf(pipeline.takeBatches('all')).map(({ user = '', count }) => `${user} ${count}`)
  t.same(found.sort(), [' 4', 'CORP\\jdoe 1', 'jdoe 2', `${'u'.repeat(128)} 1`])
  t.match(pipeline.users, { truncated: 1, refused: 2 }, 'only of messages that name a platform')
})

t.test('a message can be split at every byte of the stream', async (t) => {
  const opened = openPipeline(t)
  const { pipeline } = opened
  const message = rfc5424(opened.token.raw, squid('claude.ai'))
  for (const stream of [`${message}\n${message}\n`, `${message.length} ${message}${message.length} ${message}`]) {
    const bytes = Buffer.from(stream)
    for (let at = 0; at <= bytes.length; at++) {
      const framing = new Framing(64 * 1024)
      const origin = tcp()
      let taken = 0
      const sink = {
        frame(start: number, end: number): boolean {
          if (pipeline.take(start, end, origin) === 'stored') taken++
          return true
        },
      }
      const { line } = pipeline
      line.bytes.set(bytes.subarray(0, at))
      const rest = Buffer.from(bytes.subarray(framing.split(line.bytes, line.view, 0, at, sink)))
      line.bytes.set(rest)
      framing.split(line.bytes, line.view, 0, rest.length, sink, Follows.nothing)
      if (taken !== 2) t.fail(`split at ${at}: ${taken}`)
    }
  }
  const [event] = eventsOf(pipeline.takeBatches('all'))
  t.ok((event?.count ?? 0) > 500, 'all are one event')
})

t.test('without space nothing changes, and the same message is accepted later', async (t) => {
  const opened = openPipeline(t)
  const { pipeline } = opened
  const origin = tcp()
  const message = (index: number): string =>
    rfc5424(opened.token.raw, squid('claude.ai', `10.0.${index >> 8}.${index & 255}`, NOON))
  const inFlight: OutgoingBatch[] = []
  let sent = 0
  for (;;) {
    if (opened.take(message(sent), origin) === undefined) {
      const ready = pipeline.takeBatches('full')
      if (ready.length === 0) break
      inFlight.push(...ready)
      continue
    }
    sent++
  }
  t.equal(inFlight.length, LOG_BATCHES_IN_FLIGHT_MAX)
  t.equal(sent, LOG_BATCH_EVENTS_MAX * (LOG_BATCHES_IN_FLIGHT_MAX + 1))
  t.equal(sumsOf(pipeline).received, sent, 'a message without space is not counted as received')
  t.equal(
    opened.take(rfc5424(opened.token.raw, squid('www.example.com')), origin),
    'unmatched',
    'a message without a match is accepted',
  )
  const other = opened.administration.tokens.generate(makeOrganization(opened, 'Other'), 'others').raw
  t.equal(opened.take(rfc5424(other, squid('claude.ai')), origin), 'stored', 'another organization has space')
  const [first] = inFlight
  if (first !== undefined) pipeline.settled(first, ALL_STORED)
  t.equal(pipeline.takeBatches('full').length, 1)
  t.equal(opened.take(message(sent), origin), 'stored')
})

t.test('rejected events of logs are attributed to the sources of their batch, once each', async (t) => {
  const opened = openPipeline(t)
  const { pipeline } = opened
  for (let index = 0; index < 10; index++) {
    opened.take(rfc5424(opened.token.raw, squid('claude.ai', `10.0.0.${index}`, NOON), `host-${index % 3}`), tcp())
  }
  const [batch] = pipeline.takeBatches('all')
  if (batch !== undefined) pipeline.settled(batch, { ...ALL_STORED, rejected: [0, 1, 2] })
  t.match(Array.from(pipeline.sources.listeners.tcp), [7, 0, 0, 0, 0, 3, 0, 0])
})

t.test('a zone set while a connection is open applies to its next messages', async (t) => {
  const opened = openPipeline(t)
  const origin = tcp()
  // The header's time has no zone.
  const line = `[svc@00000 key="${opened.token.raw}"] ${squid('claude.ai', '192.0.2.45', NOON)}`
  const message = `<134>Nov 20 14:00:00 proxy-1 squid[1]: ${line}`
  t.equal(opened.take(message, origin), 'stored')
  opened.administration.tokens.set(opened.organization, opened.token.record.id, { zone: '+02:00' })
  opened.clock.add(2000)
  await nextTurn()
  for (let times = 0; times < 3; times++) t.equal(opened.take(message, origin), 'stored')
  t.equal(origin.token?.zone, '+02:00', 'the connection has it')
  const before = origin.token
  opened.take(message, origin)
  t.equal(origin.token, before, 'the zone is not read again')
})

t.test('a source that was silent for long is counted again when its connection sends', async (t) => {
  const opened = openPipeline(t)
  const { pipeline } = opened
  const origin = tcp()
  const message = rfc5424(opened.token.raw, squid('www.example.com'))
  opened.take(message, origin)
  pipeline.sources.takeDeltas(0)
  pipeline.sources.takeDeltas(NOON + HOUR_MS)
  opened.take(message, origin)
  t.match(pipeline.sources.takeDeltas(0), [{ received: 1, address: '192.0.2.200', host: 'proxy-1' }])
})

t.test('HOSTNAME is displayed without control characters and with a limited length', async (t) => {
  const opened = openPipeline(t)
  const { pipeline } = opened
  opened.take(rfc5424(opened.token.raw, 'x', `a\x1b[31m${'é'.repeat(300)}`), tcp())
  const [delta] = pipeline.sources.takeDeltas(0)
  t.match(delta?.host, /^a\?\[31m\?+$/)
  t.ok((delta?.host.length ?? 0) <= 255)
})

t.test("a token's messages per second are limited, including those without a match", async (t) => {
  const opened = openPipeline(t, { tokenRate: new TokenRate(makeTokenRateTable(), 5) })
  const { pipeline } = opened
  const origin = tcp()
  const message = rfc5424(opened.token.raw, squid('www.example.com'))
  const taken = (): number => {
    let count = 0
    while (opened.take(message, origin) !== undefined) count++
    return count
  }
  t.equal(taken(), 5)
  pipeline.line.referenceMs += 1000
  t.equal(taken(), 5)
  t.equal(opened.take('no token', origin), 'unauthorized', 'a message without a token does not wait')
  t.equal(sumsOf(pipeline).received, 11)
})

function wellFormed(opened: TestPipeline): fc.Arbitrary<Uint8Array> {
  const part = fc.constantFrom(
    rfc5424(opened.token.raw, squid('claude.ai', '192.0.2.45', NOON)),
    rfc5424(opened.token.raw, squid('www.example.com', '192.0.2.45', NOON)),
    `<13>Nov 20 12:00:00 h tag: [svc@00000 key="${opened.token.raw}"] x`,
    '<13>1 - - - - - - ',
    squid('chatgpt.com', '2001:db8::1', NOON),
  )
  return fc
    .tuple(part, fc.nat(400), fc.uint8Array({ maxLength: 6 }), fc.nat(3))
    .map(([text, at, put, remove]) => {
      const bytes = Buffer.from(text)
      return Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + remove)])
    })
    .filter((bytes) => bytes.length > 0)
}

t.test('any bytes cause no exception, and every message has an outcome', async (t) => {
  const opened = openPipeline(t)
  const { pipeline } = opened
  let sent = 0
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ minLength: 1, maxLength: 300 }), wellFormed(opened)), (bytes) => {
      if (opened.take(bytes, tcp()) === undefined) return false
      sent++
      for (const batch of pipeline.takeBatches('all')) {
        for (const event of eventsOf([batch])) if (!/^[\x20-\x7e]+$/.test(event.name)) return false
        pipeline.settled(batch, ALL_STORED)
      }
      const { received, known } = sumsOf(pipeline)
      return received === sent && known === sent
    }),
    { numRuns: 5000 },
  )
})

t.test('every format is read under every header, mixed on one connection', async (t) => {
  const HEADERS: Readonly<Record<string, (token: string, line: string) => string>> = {
    'RFC 5424': (token, line) => rfc5424(token, line),
    'RFC 5424 with a byte order mark': (token, line) => rfc5424(token, `\ufeff${line}`),
    'RFC 5424 around RFC 3164': (token, line) => rfc5424(token, `<134>Nov 20 12:00:00 fw ${line}`),
    'RFC 5424, CR LF': (token, line) => `${rfc5424(token, line)}\r\n`,
    'RFC 3164 with the element': (token, line) => `<134>Nov 20 12:00:00 fw [svc@00000 key="${token}"] ${line}`,
    'RFC 3164, ISO time and a NUL': (token, line) =>
      `<134>2026-11-20T12:00:00+00:00 fw [svc@00000 key="${token}"] ${line}\0`,
  }
  const opened = openPipeline(t)
  const { pipeline, token } = opened
  const origin = tcp()
  // A table's header line is remembered per source, and HOSTNAME is part of the source.
  for (const wrap of Object.values(HEADERS)) {
    for (const { header } of LINE_KINDS) if (header !== undefined) opened.take(wrap(token.raw, header), origin)
  }
  for (let round = 0; round < 2; round++) {
    for (const [header, wrap] of Object.entries(HEADERS)) {
      for (const kind of LINE_KINDS) {
        const [line = ''] = linesOf(kind, 1)
        const named = kind.line.includes('{host}') || kind.line.includes('{labels}')
        const outcome = opened.take(wrap(token.raw, line), origin)
        t.equal(outcome, named ? 'stored' : 'noDomain', `${kind.name}, ${header}`)
        t.equal(FORMATS[pipeline.format]?.id, kind.format, `${kind.name}, ${header}: format`)
      }
      for (const batch of pipeline.takeBatches('all')) pipeline.settled(batch, ALL_STORED)
    }
  }
  const { received, known } = sumsOf(pipeline)
  t.equal(received, known)
})

t.test("one organization does not hide another's samples, and each source shows its own", async (t) => {
  const opened = openPipeline(t)
  const { pipeline } = opened
  const other = makeOrganization(opened, 'Other')
  const second = opened.administration.tokens.generate(other, 'others').raw
  const origins = [tcp('192.0.2.1'), tcp('192.0.2.2'), tcp('192.0.2.3')]
  for (let index = 0; index < 100; index++) {
    opened.take(rfc5424(opened.token.raw, `link ${index} is up`), tcp('192.0.2.9'))
  }
  for (const origin of origins) opened.take(rfc5424(opened.token.raw, 'port is down'), origin)
  opened.take(rfc5424(second, 'fan is slow'), tcp('192.0.2.4'))
  const rejects = pipeline.takeRejects()
  t.equal(rejects.filter(({ organizationId }) => organizationId === opened.organization.id).length, 20)
  t.equal(rejects.filter(({ organizationId }) => organizationId === other.id).length, 1)
  const samples = new Map(pipeline.sources.takeDeltas(0).map(({ address, sample }) => [address, sample]))
  for (const { address } of origins) t.equal(samples.get(address), 'port is down')
  t.equal(samples.get('192.0.2.4'), 'fan is slow')
})

t.test('each collector in a batch has its own duplicates, late and rejected events', async (t) => {
  const opened = openPipeline(t)
  const { pipeline } = opened
  const event = (index: number): string => {
    const time = new Date(NOON).toISOString()
    const id = `00112233445566aa${index.toString(16).padStart(16, '0')}`
    const what = {
      id,
      name: 'claude.ai',
      client: '192.0.2.45',
      method: 'dns',
      first_seen: time,
      last_seen: time,
      count: 1,
    }
    return rfc5424(opened.token.raw, JSON.stringify(what))
  }
  const origins = [tcp('192.0.2.1'), tcp('192.0.2.2'), tcp('192.0.2.3')]
  for (let index = 0; index < 12; index++) t.equal(opened.take(event(index + 1), origins[index % 3] ?? tcp()), 'stored')
  const [batch] = pipeline.takeBatches('all')
  t.equal(batch?.deduplicate, true)
  t.equal(pipeline.unsettled, 12)
  if (batch !== undefined) pipeline.settled(batch, { duplicates: [1, 4], outsideDedupWindow: [10], rejected: [2] })
  t.equal(pipeline.unsettled, 0)
  const counts = pipeline.sources.takeDeltas(0).map(({ address, counts }) => {
    return [
      address,
      ...[Outcome.stored, Outcome.duplicate, Outcome.outsideDedupWindow, Outcome.rejected].map((at) => counts[at]),
    ]
  })
  t.same(counts, [
    ['192.0.2.1', 4, 0, 0, 0],
    ['192.0.2.2', 1, 2, 1, 0],
    ['192.0.2.3', 3, 0, 0, 1],
  ])
})

t.test('messages of an organization that was removed meanwhile are counted as unauthorized', async (t) => {
  const { pipeline, take, token } = openPipeline(t)
  const origin = tcp()
  for (let index = 0; index < 3; index++) t.equal(take(rfc5424(token.raw, squid('claude.ai')), origin), 'stored')
  const [batch] = pipeline.takeBatches('all')
  if (batch !== undefined) pipeline.settled(batch, 'all')
  t.equal(pipeline.idle, true)
  t.same(sumsOf(pipeline), { received: 3, known: 3 })
  t.equal(pipeline.sources.takeDeltas(0)[0]?.counts[Outcome.unauthorized], 3)
})

t.test("a coverage report joins the batch of its token's organization, and is counted as skipped", async (t) => {
  const pipeline = openPipeline(t, { storesCoverage: true })
  const { take, token, organization } = pipeline
  const other = makeOrganization(pipeline, 'Other')
  const { raw: others } = pipeline.administration.tokens.generate(other, 'sensor')
  const origin = tcp()
  const first = report({ counters: { packets: 7 } })
  const message = coverageMessage(first)
  t.equal(take(rfc5424(token.raw, squid('claude.ai')), origin), 'stored')
  t.equal(take(rfc5424(token.raw, message), origin), 'skipped', 'after a line of another format')
  t.equal(take(rfc5424(token.raw, squid('claude.ai')), origin), 'stored')
  t.equal(take(rfc5424(others, message), tcp()), 'skipped')
  t.equal(take(rfc5424(`svc_mt_${'0'.repeat(48)}`, message), tcp()), 'unauthorized')
  t.equal(take(rfc5424(token.raw, message.replace('"packets":7', '"packets":-7')), origin), 'rejected')
  t.equal(pipeline.pipeline.idle, false)
  const batches = pipeline.pipeline.takeBatches('all')
  t.same(
    batches.flatMap(({ organizationId, reports }) => reports.map((each) => [organizationId, each])),
    [
      [organization.id, first],
      [other.id, first],
    ],
  )
  t.equal(eventsOf(batches).length, 1, 'the events are in the batches as well')
  t.match(pipeline.pipeline.takeRejects(), [{ format: 'collector-json', reason: /^coverage: / }])
  for (const batch of batches) pipeline.pipeline.settled(batch, ALL_STORED)
  t.equal(pipeline.pipeline.idle, true)
  t.same(sumsOf(pipeline.pipeline), { received: 6, known: 6 })
})

t.test('an organization that sends only reports is limited per second and in waiting reports', async (t) => {
  const { take, token, pipeline, clock } = openPipeline(t, { storesCoverage: true })
  const message = rfc5424(token.raw, coverageMessage(report()))
  const origin = tcp()
  const reports = () => pipeline.takeBatches('all').flatMap((batch) => batch.reports).length
  for (let sent = 0; sent < COVERAGE_PER_SECOND_MAX + 30; sent++) t.equal(take(message, origin), 'skipped')
  t.equal(pipeline.coverageSkipped, 30, 'by the rate')
  pipeline.line.referenceMs = clock.nowMs() + 1000
  take(message, origin)
  t.equal(pipeline.coverageSkipped, 31, 'by the limit of waiting reports')
  t.equal(reports(), COVERAGE_PER_SECOND_MAX)
  take(message, origin)
  t.equal(reports(), 1)
})
