import { writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import {
  type CaptureSource,
  type ObservedName,
  type ObserveOptions,
  observe,
} from '../../../collector/pipeline/observe.ts'
import { ipFrame, udp } from '../../support/packets.ts'
import { dnsQuery } from '../../support/packets-dns.ts'
import { framesAt, pcapFile } from '../../support/packets-pcap.ts'
import { TcpStream } from '../../support/packets-tcp-stream.ts'
import { clientHello, tlsRecords } from '../../support/packets-tls.ts'
import { TRIE } from '../decode-frames.ts'

const QUERIES = 3000
const START_MS = Date.UTC(2026, 2, 3, 9)

/** Query i has its own name and client port. Every third query matches. */
function nameOf(query: number): string {
  return query % 3 === 0 ? `n${query}.claude.ai` : `n${query}.example.org`
}

function writeCapture(t: Test): string {
  const frames = Array.from({ length: QUERIES }, (_query, index) =>
    ipFrame(
      { source: '10.0.0.7', destination: '192.0.2.53' },
      udp({ sourcePort: 1024 + index, destinationPort: 53 }, dnsQuery([nameOf(index)])),
    ),
  )
  const path = `${t.testdir()}/queries.pcap`
  writeFileSync(path, pcapFile(framesAt(START_MS, frames)))
  return path
}

/**
 * Batches of a few hundred frames, so that a small file fills many. 1 MB covers the names of one
 * frame, with some space left.
 */
const SMALL = { frameBytes: 40_000, rowBytes: 1_000_000 }
/** After that reserve, space for about a hundred rows, so that every batch takes several runs. */
const FEW_ROWS = { frameBytes: 40_000, rowBytes: 896 * 1024 + 8000 }

async function observeAll(source: CaptureSource, options: Partial<ObserveOptions>) {
  const names: ObservedName[] = []
  const positions: number[] = []
  const observation = await observe(source, {
    trie: TRIE,
    lanes: 1,
    everyName: true,
    onNames: (found, { framesDone }) => {
      names.push(...found)
      positions.push(framesDone)
    },
    ...options,
  })
  const result = await observation.done
  return { names: names.map(({ name }) => name), positions, counts: observation.counts, ...result, first: names[0] }
}

const all = Array.from({ length: QUERIES }, (_query, index) => nameOf(index))

for (const [title, options] of [
  ['two batches for one lane', { pool: { ...SMALL, batches: 2 } }],
  ['the capture thread decodes', { lanes: 0, pool: SMALL }],
  ['the capture thread decodes, two batches', { lanes: 0, pool: { ...SMALL, batches: 2 } }],
  ['the capture thread decodes, its rows area fills repeatedly', { lanes: 0, pool: { ...FEW_ROWS, batches: 3 } }],
  ['two lanes, two batches', { lanes: 2, pool: { ...SMALL, batches: 2 } }],
  ['three lanes, many batches', { lanes: 3, pool: { ...SMALL, batches: 12 } }],
  ['one lane whose rows area fills repeatedly', { pool: { ...FEW_ROWS, batches: 3 } }],
  ['three lanes whose rows areas fill repeatedly', { lanes: 3, pool: { ...FEW_ROWS, batches: 9 } }],
] as [string, Partial<ObserveOptions>][]) {
  t.test(`${title}: every name once, in order`, async (t) => {
    const { names, positions, counts } = await observeAll({ kind: 'file', path: writeCapture(t) }, options)
    t.same(names, all)
    t.equal(positions.at(-1), QUERIES)
    t.ok(
      positions.every((position, index) => index === 0 || position > (positions[index - 1] ?? 0)),
      'the position only goes forward',
    )
    t.equal(counts.frames, QUERIES)
    t.equal(counts.classes.dnsQuery, QUERIES)
    t.same([counts.matched, counts.unmatched], [1000, 2000])
  })
}

t.test('at every position, exactly the names before it have been delivered', async (t) => {
  const path = writeCapture(t)
  let delivered = 0
  const observation = await observe(
    { kind: 'file', path },
    {
      trie: TRIE,
      lanes: 3,
      everyName: true,
      pool: { ...FEW_ROWS, batches: 9 },
      onNames: (names, { framesDone }) => {
        delivered += names.length
        // Each frame has one name.
        t.equal(delivered, framesDone)
      },
    },
  )
  await observation.done
})

t.test('an observation continues after the frames that were delivered before', async (t) => {
  const { names, positions } = await observeAll(
    { kind: 'file', path: writeCapture(t) },
    { lanes: 2, deliveredFrames: 1234 },
  )
  t.same(names, all.slice(1234))
  t.equal(positions.at(-1), QUERIES)
  const behind = await observeAll({ kind: 'file', path: writeCapture(t) }, { deliveredFrames: QUERIES + 5 })
  t.same(behind.names, [])
})

t.test(
  'an observation ended after any delivery and restarted reports every name once, including hellos that span the position',
  async (t) => {
    // 60 connections with interleaved hellos, of which every third is incomplete, in batches of a
    // few frames.
    const connections = Array.from({ length: 60 }, (_, index) => {
      const hello = clientHello({ serverName: `c${index}.claude.ai`, postQuantum: true })
      return new TcpStream({ clientPort: 40_000 + index }, tlsRecords(hello))
    })
    const frames = [
      ...connections.flatMap((connection) => [connection.syn(), connection.sendSplit([1000])[0] as Buffer]),
      ...connections.flatMap((connection, index) =>
        index % 3 === 0 ? [] : [connection.sendSplit([1000])[1] as Buffer],
      ),
    ]
    const path = `${t.testdir()}/talks.pcap`
    writeFileSync(path, pcapFile(framesAt(START_MS, frames)))
    const pool = { frameBytes: 8000, rowBytes: 1_000_000, batches: 3 }
    const deliveries: { names: string[]; framesDone: number }[] = []
    const observation = await observe(
      { kind: 'file', path },
      {
        trie: TRIE,
        lanes: 2,
        everyName: true,
        pool,
        onNames: (names, { framesDone }) => void deliveries.push({ names: names.map(({ name }) => name), framesDone }),
      },
    )
    await observation.done
    const whole = deliveries.flatMap(({ names }) => names)
    t.equal(whole.length, 60)
    t.equal(new Set(whole).size, 60)
    t.ok(deliveries.length > 10, `${deliveries.length} deliveries`)
    for (const [index, { framesDone }] of deliveries.entries()) {
      const before = deliveries.slice(0, index + 1).flatMap(({ names }) => names)
      const again = await observeAll(
        { kind: 'file', path },
        { lanes: 1 + (index % 2), pool, deliveredFrames: framesDone },
      )
      t.same([...before, ...again.names].sort(), [...whole].sort(), `ended at frame ${framesDone}`)
      t.equal(again.counts.repeated, before.length)
      t.equal(again.positions.at(-1) ?? frames.length, frames.length)
    }
  },
)

t.test('a hello continues in the next batch, however late that batch ends', async (t) => {
  const hello = tlsRecords(clientHello({ serverName: 'late.claude.ai', serverNameLast: true, postQuantum: true }))
  const connection = new TcpStream({}, hello)
  const [first, second] = connection.sendSplit([1000]) as [Buffer, Buffer]
  const filler = ipFrame(
    { source: '10.0.0.8', destination: '192.0.2.1' },
    udp({ sourcePort: 9, destinationPort: 9 }, Buffer.alloc(1000)),
  )
  const hour = 3_600_000
  const path = `${t.testdir()}/sparse.pcap`
  writeFileSync(
    path,
    pcapFile([
      { bytes: filler, timeMs: START_MS },
      { bytes: first, timeMs: START_MS + 1 },
      { bytes: second, timeMs: START_MS + 2 },
      { bytes: filler, timeMs: START_MS + hour },
    ]),
  )
  // Two frames with headers fit into a batch.
  const { names, positions } = await observeAll(
    { kind: 'file', path },
    { pool: { ...SMALL, frameBytes: 2200, batches: 3 } },
  )
  t.same(names, ['late.claude.ai'])
  t.same(positions, [2, 4], 'two batches')
})

t.test('without everyName, only matches are delivered, and the others are counted', async (t) => {
  const { names, counts, first } = await observeAll({ kind: 'file', path: writeCapture(t) }, { everyName: false })
  t.same(
    names,
    all.filter((name) => name.endsWith('.claude.ai')),
  )
  t.same([counts.names, counts.matched, counts.unmatched], [3000, 1000, 2000])
  t.match(first, { timeMs: START_MS, rule: 1, client: '10.0.0.7', clientPort: 1024 })
})

t.test('a slow consumer blocks the source, and is called once at a time', async (t) => {
  let running = 0
  let taken = 0
  const observation = await observe(
    { kind: 'file', path: writeCapture(t) },
    {
      trie: TRIE,
      lanes: 2,
      everyName: true,
      pool: { ...SMALL, batches: 2 },
      onNames: async (names) => {
        t.equal(++running, 1)
        await new Promise((resolve) => setTimeout(resolve, 5))
        running--
        taken += names.length
      },
    },
  )
  await observation.done
  t.equal(taken, QUERIES)
})

t.test('a consumer that fails ends the observation with its error', async (t) => {
  const observation = await observe(
    { kind: 'file', path: writeCapture(t) },
    {
      trie: TRIE,
      lanes: 2,
      pool: { ...SMALL, batches: 2 },
      onNames: () => Promise.reject(new Error('outbox is full')),
    },
  )
  await t.rejects(observation.done, { message: 'outbox is full' })
})

t.test('a decode worker that cannot start ends the observation, even while the source waits for a batch', async (t) => {
  const observation = await observe(
    { kind: 'file', path: writeCapture(t) },
    { trie: new SharedArrayBuffer(4), lanes: 2, pool: { ...SMALL, batches: 2 }, onNames: () => {} },
  )
  await t.rejects(observation.done, /not a compiled registry/)
})

t.test('stop() delivers what was captured and ends', async (t) => {
  let taken = 0
  let position = 0
  const observation = await observe(
    { kind: 'file', path: writeCapture(t) },
    {
      trie: TRIE,
      lanes: 1,
      everyName: true,
      pool: { ...SMALL, batches: 2 },
      onNames: async (names, { framesDone }) => {
        taken += names.length
        position = framesDone
        await new Promise((resolve) => setTimeout(resolve, 20))
      },
    },
  )
  await observation.stop()
  t.ok(taken < QUERIES, `${taken} names`)
  t.equal(taken, position)
  t.equal(observation.counts.frames, position)
})

t.test('progress reaches the end of the file', async (t) => {
  const path = writeCapture(t)
  const seen: [number, number][] = []
  await observeAll(
    { kind: 'file', path },
    { pool: { ...SMALL, batches: 4 }, onProgress: (read, total) => void seen.push([read, total]) },
  )
  const [read, total] = seen.at(-1) ?? []
  t.equal(read, total)
  t.ok(seen.length > 5)
})

t.test('a source that cannot be opened rejects', async (t) => {
  const path = `${t.testdir({ 'text.pcap': 'no capture' })}/text.pcap`
  const options = { trie: TRIE, lanes: 1, onNames: () => {} }
  await t.rejects(observe({ kind: 'file', path: '/does/not/exist.pcap' }, options), {
    name: 'Fault',
    code: 'CAPTURE_UNREADABLE',
  })
  await t.rejects(observe({ kind: 'file', path }, options), { name: 'Fault', code: 'CAPTURE_FORMAT' })
  await t.rejects(observe({ kind: 'file', path }, { ...options, lanes: -1 }), /lanes: found -1/)
})
