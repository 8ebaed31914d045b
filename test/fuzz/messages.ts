import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LINE_KINDS, linesOf } from '../../bench/workload/log-lines.ts'
import { Administration } from '../../engine/admin/administration.ts'
import { WORK_BYTES } from '../../engine/ingest/connection.ts'
import { isTaken, MessagePipeline } from '../../engine/ingest/message-pipeline.ts'
import { Origin } from '../../engine/ingest/origin.ts'
import { coverageFromMessage } from '../../engine/ingest/read-coverage.ts'
import { LISTENERS } from '../../engine/ingest/sources.ts'
import { Follows } from '../../engine/ingest/syslog/counted.ts'
import { Framing } from '../../engine/ingest/syslog/framing.ts'
import { SyslogMessage } from '../../engine/ingest/syslog/message.ts'
import { readSyslog } from '../../engine/ingest/syslog/read-message.ts'
import { TokenAuthenticator } from '../../engine/ingest/token-authenticator.ts'
import { unpackBatch } from '../../engine/kernel/event/event.ts'
import { systemClock } from '../../engine/kernel/process/clock.ts'
import { totalOf } from '../../engine/store/outcomes.ts'
import { RegistryInForce } from '../../engine/store/registry-in-force.ts'
import { Store } from '../../engine/store/store.ts'
import { coverageMessage, report } from '../support/coverage.ts'
import { ALL_STORED } from '../support/pipeline.ts'
import { Random } from './random.ts'

/**
 * Sends mutated syslog messages through framing, header parsing and pipeline. For any bytes: nothing
 * throws; the messages do not depend on how the stream is split into chunks; the result of a
 * message does not depend on the bytes around it; offsets are within the message; and every
 * received message has an outcome.
 */
const MESSAGE_BYTES_MAX = 600
const FRAME_BYTES = 16 * 1024
const GAP_BYTES = 16
const FILLINGS = [0x00, 0x3c, 0xff] as const
const NOW = Date.parse('2026-11-20T12:00:00Z')
/** Parts of headers and delimiters. */
const ODD_TEXTS = [
  ...[
    '\n',
    '\0',
    '\r\n',
    '<',
    '>',
    '<13>',
    '<999>',
    '[',
    ']',
    '"',
    '\\',
    ' ',
    '  ',
    '-',
    ': ',
    '1 ',
    '0',
    '99999 <',
    ':',
    '[',
  ],
  ...[
    'Nov 20 12:00:00',
    '2026-11-20T12:00:00Z',
    '[svc@00000 key="',
    '\ufeff',
    '::1',
    '192.0.2.1',
    '\xff',
    '[4711]',
    '7 <1>abcd',
  ],
] as const

export function fuzzMessages(seed: number, mutations: number): void {
  const directory = mkdtempSync(join(tmpdir(), 'fuzz-messages-'))
  const store = new Store(directory)
  try {
    fuzz(new Random(seed), seed, mutations, store)
  } finally {
    void store.close()
    rmSync(directory, { recursive: true })
  }
}

function fuzz(random: Random, seed: number, mutations: number, store: Store): void {
  const administration = new Administration(store, systemClock)
  const organization = administration.organizations.create({ name: 'A', domain: 'a.example', plan: 'enterprise' })
  const token = administration.tokens.generate(organization, 'fuzz').raw
  const originals = messagesOf(token)
  const pipeline = new MessagePipeline(
    new Uint8Array(WORK_BYTES),
    new RegistryInForce(store),
    new TokenAuthenticator(store, systemClock),
    {
      tokenRate: undefined,
      noteUnauthorized: () => {},
      storesCoverage: true,
    },
  )
  for (let done = 0; done < mutations; done++) {
    const message = mutated(random, random.of(originals))
    const stream = Buffer.concat(
      Array.from({ length: 1 + random.below(4) }, () => framed(random, mutated(random, random.of(originals)))),
    )
    try {
      checkHeader(message)
      checkFraming(random, stream)
      checkPipeline(random, pipeline, stream)
    } catch (error) {
      throw new Error(
        `seed ${seed}, message ${done}: ${(error as Error).stack}\n${message.toString('hex')}\n${stream.toString('hex')}`,
      )
    }
  }
}

function messagesOf(token: string): Buffer[] {
  const squid =
    '1795162502.119    318 192.0.2.45 TCP_TUNNEL/200 6120 CONNECT claude.ai:443 jdoe HIER_DIRECT/198.51.100.20 -'
  return [
    `<134>1 2026-11-20T09:15:02.123Z proxy-1 squid 4711 - [svc@00000 key="${token}" id="a\\"b"][x@1 y="z"] ${squid}`,
    `<134>Nov 20 09:15:02 proxy-1 squid[4711]: [svc@00000 key="${token}"] ${squid}`,
    `<134>1 2026-11-20T09:15:02Z relay - - - [svc@00000 key="${token}"] <134>Nov 20 09:15:02 192.0.2.7 squid: ${squid}`,
    `<13>Nov 20 2026 09:15:02 CET: %ASA-6-302013: Built`,
    `1 2026-11-20T09:15:02Z h a p m - \ufeffx`,
    `<5>*Nov 20 09:15:02.123: %SYS-5-CONFIG_I: [svc@00000 key="${token}"] x`,
    `<134>1 2026-11-20T09:15:02Z edge-7 posture-collector 1 coverage [svc@00000 key="${token}"] ${coverageMessage(report())}`,
    squid,
    // One line of each format, as a relay passes it on.
    ...LINE_KINDS.flatMap((kind) => linesOf(kind, 1)).map((line) => {
      return `<134>1 2026-11-20T09:15:02Z relay fw - - [svc@00000 key="${token}"] ${line}`
    }),
    ...LINE_KINDS.flatMap(({ header = [] }) => header).map((line) => {
      return `<134>1 - - - - - [svc@00000 key="${token}"] ${line}`
    }),
  ].map((text) => Buffer.from(text))
}

function mutated(random: Random, original: Buffer): Buffer {
  let bytes = Buffer.from(original)
  for (let changes = random.below(4); changes > 0 && bytes.length > 1; changes--) {
    // Headers are in the first bytes.
    const at = random.below(random.below(2) === 0 ? Math.min(60, bytes.length) : bytes.length)
    switch (random.below(5)) {
      case 0:
        bytes[at] = random.below(256)
        break
      case 1:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + random.below(12))])
        break
      case 2:
        bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from(random.of(ODD_TEXTS), 'latin1'), bytes.subarray(at)])
        break
      case 3:
        bytes = Buffer.concat([bytes.subarray(0, at), Buffer.alloc(random.below(700), bytes[at]), bytes.subarray(at)])
        break
      default:
        bytes = bytes.subarray(0, at + 1)
    }
  }
  return bytes.length === 0 ? Buffer.from('x') : bytes
}

function framed(random: Random, message: Buffer): Buffer {
  const length = message.length + (random.below(8) === 0 ? random.below(5) - 2 : 0)
  const transport = random.of(['counted', 'counted', '\n', '\n', '\r\n', '\0', ''])
  return transport === 'counted'
    ? Buffer.concat([Buffer.from(`${length} `), message])
    : Buffer.concat([message, Buffer.from(transport)])
}

function checkHeader(message: Buffer): void {
  const [first, ...others] = FILLINGS.map((filling) => {
    const bytes = new Uint8Array(message.length + 2 * GAP_BYTES).fill(filling)
    bytes.set(message, GAP_BYTES)
    const found = new SyslogMessage()
    const end = GAP_BYTES + message.length
    readSyslog(new DataView(bytes.buffer), GAP_BYTES, end, found, NOW)
    for (const [from, to] of [
      [found.timeStart, found.timeEnd],
      [found.hostStart, found.hostEnd],
      [found.appStart, found.appEnd],
      [found.tokenStart, found.tokenEnd],
      [found.msgStart, found.msgEnd],
    ] as const) {
      if (from < GAP_BYTES || to < from || to > end) throw new Error(`[${from}, ${to}) in [${GAP_BYTES}, ${end})`)
    }
    if (found.pri < 0 || found.pri > 191) throw new Error(`PRI ${found.pri}`)
    return JSON.stringify(found)
  })
  if (others.some((other) => other !== first)) throw new Error('bytes around the message have a say')
}

/** Feeds the chunks as a connection does. */
function cut(chunks: readonly Buffer[]): string {
  const framing = new Framing(MESSAGE_BYTES_MAX)
  const bytes = new Uint8Array(FRAME_BYTES)
  const view = new DataView(bytes.buffer)
  const messages: string[] = []
  const sink = {
    frame(start: number, end: number): boolean {
      if (end <= start || end - start > MESSAGE_BYTES_MAX) throw new Error(`a message of ${end - start} bytes`)
      messages.push(Buffer.from(bytes.subarray(start, end)).toString('latin1'))
      return true
    },
  }
  let waiting = Buffer.alloc(0)
  for (const chunk of chunks) {
    const mayComplete = waiting.length === 0 || framing.mayComplete(waiting.length, chunk)
    waiting = Buffer.concat([waiting, chunk])
    if (!mayComplete) continue
    bytes.set(waiting)
    const rest = framing.split(bytes, view, 0, waiting.length, sink)
    if (rest < 0 || rest > waiting.length) throw new Error(`rest at ${rest} of ${waiting.length}`)
    waiting = Buffer.from(waiting.subarray(rest))
  }
  bytes.set(waiting)
  framing.split(bytes, view, 0, waiting.length, sink, Follows.nothing)
  // Whether a count is right is decided by what has arrived.
  return framing.takeFaults() === undefined ? JSON.stringify([messages, framing.oversized]) : 'wrong counts'
}

function piecesOf(random: Random, stream: Buffer): Buffer[] {
  const pieces: Buffer[] = []
  const most = random.of([1, 7, 100, 1000])
  for (let at = 0; at < stream.length; ) {
    const size = 1 + random.below(most)
    pieces.push(stream.subarray(at, at + size))
    at += size
  }
  return pieces
}

function checkFraming(random: Random, stream: Buffer): void {
  if (stream.length > FRAME_BYTES - 1) return
  const whole = cut([stream])
  const pieces = cut(piecesOf(random, stream))
  if (whole !== pieces && ![whole, pieces].includes('wrong counts'))
    throw new Error(`chunks have a say:\n${whole}\n${pieces}`)
}

function checkPipeline(random: Random, pipeline: MessagePipeline, stream: Buffer): void {
  const origin = new Origin(random.of(LISTENERS), '192.0.2.1', 514)
  const framing = new Framing(MESSAGE_BYTES_MAX)
  pipeline.line.referenceMs = NOW
  pipeline.line.bytes.set(stream)
  const { bytes, view } = pipeline.line
  const sink = { frame: (start: number, end: number): boolean => isTaken(pipeline.take(start, end, origin)) }
  framing.split(bytes, view, 0, stream.length, sink, Follows.nothing)
  if (framing.stalled) throw new Error('no room')
  for (const batch of pipeline.takeBatches('all')) {
    const unpacked = unpackBatch(batch.bytes, batch.events)
    if (typeof unpacked === 'string') throw new Error(unpacked)
    for (const event of unpacked.events) if (typeof event === 'string') throw new Error(event)
    for (const each of batch.reports) {
      if (typeof coverageFromMessage(coverageMessage(each)) === 'string') throw new Error('no report')
    }
    pipeline.settled(batch, ALL_STORED)
  }
  pipeline.takeRejects()
  let received = 0
  let known = 0
  for (const listener of LISTENERS) {
    received += pipeline.sources.received[listener]
    known += totalOf(pipeline.sources.listeners[listener])
  }
  if (received !== known) throw new Error(`${received} messages came, ${known} are known`)
  // Each mutated host is a new source. Sources are reported and forgotten, as in the service.
  if (random.below(100) === 0) pipeline.sources.takeDeltas(Number.POSITIVE_INFINITY)
}
