import { createHash } from 'node:crypto'
import t from 'tap'
import { PacketClass } from '../../../collector/batch/packet-class.ts'
import { readServerName } from '../../../collector/decode/client-hello.ts'
import { FoundName, NameForm } from '../../../collector/decode/name.ts'
import {
  CryptoFrame,
  FRAMES_MALFORMED,
  InitialOpener,
  LongHeader,
  NO_MORE_FRAMES,
  nextCryptoFrame,
  QuicFault,
  QuicPacket,
  readLongHeader,
} from '../../../collector/decode/quic-initial.ts'
import { InitialKeys, quicVersion } from '../../../collector/decode/quic-keys.ts'
import { HelloBody } from '../../../collector/decode/tls-record.ts'
import {
  ack,
  connectionClose,
  cryptoFrame,
  type InitialFields,
  initialDatagrams,
  padding,
  ping,
  QUIC_V1,
  QUIC_V2,
  quicInitial,
  quicLongOther,
  quicRetry,
  varint,
} from '../../support/packets-quic.ts'
import { clientHello, fill } from '../../support/packets-tls.ts'

/** Default for quick runs. FUZZ_MUTATIONS makes the run longer. */
const MUTATIONS = Number(process.env['FUZZ_MUTATIONS'] ?? 20_000)
const SEED = Number(process.env['FUZZ_SEED'] ?? 1)

/** RFC 9001 appendix A and RFC 9369 appendix A protect the same frames with this connection ID. */
const DCID = Buffer.from('8394c8f03e515708', 'hex')
const SCID = Buffer.from('c0ffee01', 'hex')
const RFC_CRYPTO_FRAME = Buffer.from(
  '060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c00000413011302010000c0' +
    '00000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d0017001800100007000504616c706e0005000501' +
    '00000000003300260024001d00209370b2c9caa47fbabaf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304' +
    '000d0010000e0403050306030203080408050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff07' +
    '048000ffff0801100104800075300901100f088394c8f03e51570806048000ffff',
  'hex',
)

/** The contents of a datagram, as the decoder reads them. */
interface Seen {
  /** Type, token and plaintext of each packet. `plaintext` is undefined if decryption fails. */
  readonly packets: { type: QuicPacket; token: string; plaintext: Buffer | undefined; crypto: Map<number, Buffer> }[]
  /** The fault that ended reading; 0 at the end of the datagram. */
  readonly fault: number
}

const opener = new InitialOpener()

/**
 * Places the datagram in shared memory between 0xff bytes, as in a batch. A read beyond the
 * datagram changes the result.
 */
function placed(datagram: Buffer): { view: DataView; bytes: Uint8Array; start: number; end: number } {
  const start = 13
  const bytes = new Uint8Array(new SharedArrayBuffer(datagram.length + 40)).fill(0xff)
  bytes.set(datagram, start)
  return { view: new DataView(bytes.buffer), bytes, start, end: start + datagram.length }
}

function see(datagram: Buffer, keyDcid?: Buffer): Seen {
  const { view, bytes, start, end } = placed(datagram)
  const header = new LongHeader()
  const frame = new CryptoFrame()
  const packets: Seen['packets'] = []
  for (let at = start; at < end; at = header.packetEnd) {
    const fault = readLongHeader(view, at, end, header)
    if (fault < 0) return { packets, fault }
    const ordered = [at, header.dcidStart, header.dcidEnd, header.scidStart, header.scidEnd, header.tokenStart]
    ordered.push(header.tokenEnd, header.packetNumberStart, header.packetEnd, end)
    if (ordered.some((offset, index) => offset < (ordered[index - 1] ?? 0)) || header.packetEnd === at)
      throw new Error(`offsets ${ordered} of ${datagram.toString('hex')}`)
    const token = Buffer.from(bytes.slice(header.tokenStart, header.tokenEnd)).toString('hex')
    const crypto = new Map<number, Buffer>()
    let plaintext: Buffer | undefined
    const version = quicVersion(header.version)
    if (header.packetType === QuicPacket.initial && version !== undefined) {
      const keys = InitialKeys.derive(version, keyDcid ?? bytes.subarray(header.dcidStart, header.dcidEnd))
      const before = Buffer.from(bytes)
      const length = opener.open(view, bytes, header, at, keys)
      if (!before.equals(Buffer.from(bytes))) throw new Error('the packet was changed')
      if (length >= 0) {
        plaintext = Buffer.from(opener.plainBytes.slice(0, length))
        let next = nextCryptoFrame(opener.plain, 0, length, frame)
        for (; next > 0; next = nextCryptoFrame(opener.plain, next, length, frame))
          crypto.set(frame.offset, plaintext.subarray(frame.start, frame.end))
      }
    }
    packets.push({ type: header.packetType, token, plaintext, crypto })
  }
  return { packets, fault: 0 }
}

/** The CRYPTO bytes of all packets, in order. */
function handshakeBytes(seen: readonly Seen[]): Buffer {
  const pieces = seen.flatMap(({ packets }) => packets.flatMap(({ crypto }) => [...crypto]))
  const stream = Buffer.alloc(Math.max(0, ...pieces.map(([offset, bytes]) => offset + bytes.length)))
  for (const [offset, bytes] of pieces) stream.set(bytes, offset)
  return stream
}

function serverName(handshake: Buffer): string {
  const hello = new HelloBody()
  hello.view = new DataView(handshake.buffer, handshake.byteOffset, handshake.length)
  hello.start = 4
  hello.end = handshake.length
  const name = new FoundName(hello.view)
  if (readServerName(hello, name) !== PacketClass.clientHello || name.form !== NameForm.dotted) return ''
  return handshake.subarray(name.start, name.end).toString('latin1')
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

/**
 * The published packets have 1,200 bytes. Each is given by its start, its tag and a digest of the
 * whole.
 */
const PUBLISHED = [
  {
    source: 'RFC 9001 A.1 and A.2',
    version: QUIC_V1,
    key: '1f369613dd76d5467730efcbe3b1a22d',
    iv: 'fa044b2f42a3fd3b46fb255c',
    headerKey: '9f50449e04a0e810283a1e9933adedd2',
    begin: 'c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11',
    tag: 'e221af44860018ab0856972e194cd934',
    sha256: '73fa0210cb4a5a17dc10b9dc98e5cc359ba1c20fe7c0e93a9e1dcb473c37e097',
  },
  {
    source: 'RFC 9369 A.1 and A.2',
    version: QUIC_V2,
    key: '8b1a0bc121284290a29e0971b5cd045d',
    iv: '91f73e2351d8fa91660e909f',
    headerKey: '45b95e15235d6f45a6b19cbcb0294ba9',
    begin: 'd76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485',
    tag: 'a18b2faa745b6fe189cf772a9f84cbfc',
    sha256: 'b0b766fe7e762577072d3365cc4f9635809210cba301a67f8457f5e6fdac5c68',
  },
] as const

for (const row of PUBLISHED) {
  t.test(`${row.source}: the keys and the client's packet are correct`, async (t) => {
    const version = quicVersion(row.version)
    if (version === undefined) throw new Error('unknown version')
    const keys = InitialKeys.derive(version, DCID)
    t.same([hex(keys.key), hex(keys.iv), hex(keys.headerKey)], [row.key, row.iv, row.headerKey])

    const packet = quicInitial({
      version: row.version,
      dcid: DCID,
      packetNumber: 2,
      packetNumberBytes: 4,
      frames: RFC_CRYPTO_FRAME,
      padTo: 1200,
    })
    t.equal(hex(packet.subarray(0, 32)), row.begin)
    t.equal(hex(packet.subarray(-16)), row.tag)
    t.equal(createHash('sha256').update(packet).digest('hex'), row.sha256, 'the builder makes the published packet')

    const { packets, fault } = see(packet)
    t.equal(fault, 0)
    t.equal(packets.length, 1)
    t.same(packets[0]?.plaintext, Buffer.concat([RFC_CRYPTO_FRAME, Buffer.alloc(1162 - RFC_CRYPTO_FRAME.length)]))
    t.equal(serverName(handshakeBytes([{ packets, fault }])), 'example.com')
  })
}

const HELLO = clientHello({ serverName: 'chatgpt.com', seed: 5 })
const LARGE_HELLO = clientHello({ serverName: 'claude.ai', postQuantum: true, serverNameLast: true, seed: 6 })
const FRAMES = cryptoFrame(0, HELLO)

t.test('every supported version is decrypted; the neighboring versions are unknown', async (t) => {
  const drafts = Array.from({ length: 13 }, (_, index) => 0xff00_0016 + index)
  // Also a reserved version (RFC 9000 §15), encrypted as version 1.
  const reserved = 0x1a2a_3a4a
  for (const version of [QUIC_V1, QUIC_V2, ...drafts, 0xface_b001, 0xface_b002, 0xface_b00e, reserved]) {
    const { packets } = see(quicInitial({ version, dcid: DCID, scid: SCID, frames: FRAMES, padTo: 1200 }))
    t.same(packets[0]?.crypto, new Map([[0, HELLO]]), version.toString(16))
  }
  // Google's Q046 and Q050, and the drafts just outside the supported range.
  for (const version of [
    2, 0x1a2a_3a4b, 0x5130_3436, 0x5130_3530, 0xff00_0015, 0xff00_0023, 0xface_b000, 0xffff_ffff,
  ]) {
    t.equal(quicVersion(version), undefined, version.toString(16))
    const { packets, fault } = see(quicInitial({ version, dcid: DCID, scid: SCID, frames: FRAMES, padTo: 1200 }))
    t.same([packets.length, packets[0]?.type, fault], [1, QuicPacket.unknownVersion, 0])
  }
})

const OPENING: readonly [why: string, fields: Partial<InitialFields>][] = [
  ...([1, 2, 3, 4] as const).flatMap((packetNumberBytes): [string, Partial<InitialFields>][] => [
    [`packet number 0 in ${packetNumberBytes}`, { packetNumberBytes, padTo: 1200 }],
    [
      `highest packet number in ${packetNumberBytes}`,
      { packetNumberBytes, packetNumber: 2 ** (8 * packetNumberBytes) - 1, padTo: 1200 },
    ],
    [`without padding, packet number in ${packetNumberBytes}`, { packetNumberBytes }],
    [`shortest payload, packet number in ${packetNumberBytes}`, { packetNumberBytes, frames: ping() }],
  ]),
  ['no connection IDs', { dcid: Buffer.alloc(0), scid: Buffer.alloc(0) }],
  ['connection IDs of 20 bytes', { dcid: fill(1)(20), scid: fill(2)(20) }],
  ['keys of another connection ID, as behind the first answer', { keyDcid: fill(3)(8) }],
  ...[1, 63, 64, 900, 16_383, 16_384, 40_000].map((bytes): [string, Partial<InitialFields>] => [
    `token of ${bytes}`,
    { token: fill(4)(bytes) },
  ]),
  ['a payload of 60,000', { frames: Buffer.concat([FRAMES, padding(60_000 - FRAMES.length)]) }],
]

t.test('Initials of every form are decrypted', async (t) => {
  for (const [why, fields] of OPENING) {
    for (const version of [QUIC_V1, QUIC_V2]) {
      const packet = { dcid: DCID, scid: SCID, frames: FRAMES, version, ...fields }
      const { packets, fault } = see(quicInitial(packet), fields.keyDcid)
      t.equal(fault, 0, why)
      t.equal(packets[0]?.token, hex(packet.token ?? Buffer.alloc(0)), why)
      t.same(packets[0]?.plaintext?.subarray(0, packet.frames.length), packet.frames, why)
    }
  }
})

t.test('other keys do not decrypt a packet', async (t) => {
  const datagram = quicInitial({ dcid: DCID, frames: FRAMES, padTo: 1200 })
  const opened = Array.from({ length: 200 }, (_, seed) => see(datagram, fill(seed)(8)).packets[0]?.plaintext)
  t.ok(opened.every((plaintext) => plaintext === undefined))
})

t.test('all packets of a datagram are read', async (t) => {
  for (const version of [QUIC_V1, QUIC_V2]) {
    const half = HELLO.length >> 1
    const datagram = Buffer.concat([
      quicInitial({ version, dcid: DCID, scid: SCID, frames: cryptoFrame(half, HELLO.subarray(half)) }),
      quicLongOther({ type: 'zeroRtt', version, dcid: DCID, scid: SCID, bytes: 300 }),
      quicInitial({
        version,
        dcid: DCID,
        scid: SCID,
        packetNumber: 1,
        frames: cryptoFrame(0, HELLO.subarray(0, half)),
      }),
      quicLongOther({ type: 'handshake', version, dcid: DCID, scid: SCID, bytes: 70 }),
    ])
    const whole = see(datagram)
    const types = [QuicPacket.initial, QuicPacket.zeroRtt, QuicPacket.initial, QuicPacket.handshake]
    t.same(
      whole.packets.map(({ type }) => type),
      types,
    )
    t.equal(whole.fault, 0)
    t.equal(serverName(handshakeBytes([whole])), 'chatgpt.com')
    // RFC 9000 §12.2: a packet with a short header comes last.
    const shortLast = see(Buffer.concat([datagram, Buffer.from([0x41]), fill(1)(40)]))
    t.equal(shortLast.packets.length, 4)
    t.equal(shortLast.fault, QuicFault.notLongHeader)
  }
})

/** RFC 9000 §17.2: first byte, version, both connection IDs with their lengths, and the rest. */
function longHeader(first: number, version: number, dcid: Buffer, scid: Buffer, rest: readonly Buffer[]): Buffer {
  const start = Buffer.from([first, 0, 0, 0, 0, dcid.length])
  start.writeUInt32BE(version, 1)
  return Buffer.concat([start, dcid, Buffer.from([scid.length]), scid, ...rest])
}

const { truncated, malformed, notLongHeader } = QuicFault
const id = (bytes: number) => fill(bytes)(bytes)
const HEADERS: readonly [why: string, bytes: Buffer, answer: number, type?: QuicPacket][] = [
  ['nothing', Buffer.alloc(0), truncated],
  ['a short header', Buffer.from([0x40, 1, 2, 3]), notLongHeader, QuicPacket.short],
  ['DTLS or STUN', Buffer.from([0x16, 0xfe, 0xfd, 0, 0]), notLongHeader, QuicPacket.short],
  ['version negotiation', longHeader(0x80, 0, id(8), id(4), [Buffer.from('00000001', 'hex')]), 0, 4],
  ['version negotiation with long connection IDs', longHeader(0xca, 0, id(255), id(255), []), 0, 4],
  ['unknown version with long connection IDs', longHeader(0xc0, 9, id(255), id(21), []), 0, 5],
  ['unknown version, cut', longHeader(0xc0, 9, id(255), id(21), []).subarray(0, -1), truncated],
  ['DCID of 21', longHeader(0xc0, 1, id(21), id(4), [varint(0), varint(30), id(30)]), malformed],
  ['SCID of 21', longHeader(0xc0, 1, id(4), id(21), [varint(0), varint(30), id(30)]), malformed],
  ['the Fixed Bit is zero (RFC 9287)', longHeader(0x80, 1, id(8), id(8), [varint(0), varint(30), id(30)]), 0, 0],
  ['0-RTT', longHeader(0xd0, 1, id(8), id(8), [varint(30), id(30)]), 0, 1],
  ['Handshake', longHeader(0xe0, 1, id(8), id(8), [varint(30), id(30)]), 0, 2],
  ['Retry', quicRetry({ dcid: id(8), scid: id(4), token: id(60) }), 0, 3],
  ['Retry of version 2', quicRetry({ version: QUIC_V2, dcid: id(8), scid: id(4), token: id(60) }), 0, 3],
  ['Retry, shorter than its tag', longHeader(0xf0, 1, id(8), id(8), [id(15)]), truncated],
  ['0-RTT of version 2', longHeader(0xe0, QUIC_V2, id(8), id(8), [varint(30), id(30)]), 0, 1],
  ['Handshake of version 2', longHeader(0xf0, QUIC_V2, id(8), id(8), [varint(30), id(30)]), 0, 2],
  ['no Token Length', longHeader(0xc0, 1, id(8), id(8), []), truncated],
  ['Token Length cut', longHeader(0xc0, 1, id(8), id(8), [varint(5, 4).subarray(0, 3)]), truncated],
  ['token to the end', longHeader(0xc0, 1, id(8), id(8), [varint(9), id(9)]), truncated],
  ['token beyond the end', longHeader(0xc0, 1, id(8), id(8), [varint(10), id(9)]), malformed],
  ['token of 2^62 - 2^10', longHeader(0xc0, 1, id(8), id(8), [varint(2 ** 62 - 1024), id(9)]), malformed],
  ['Length to the end', longHeader(0xc0, 1, id(8), id(8), [varint(0), varint(30), id(30)]), 0, 0],
  ['Length one beyond the end', longHeader(0xc0, 1, id(8), id(8), [varint(0), varint(31), id(30)]), malformed],
  ['Length of 2^62 - 2^10', longHeader(0xc0, 1, id(8), id(8), [varint(0), varint(2 ** 62 - 1024), id(9)]), malformed],
  ['Length cut', longHeader(0xc0, 1, id(8), id(8), [varint(0), varint(30, 8).subarray(0, 7)]), truncated],
  ['Length of 0', longHeader(0xc0, 1, id(8), id(8), [varint(0), varint(0)]), 0, 0],
  ...([1, 2, 4, 8] as const).map((bytes): [string, Buffer, number, QuicPacket] => [
    `Token Length and Length in ${bytes}`,
    longHeader(0xc0, 1, id(8), id(8), [varint(5, bytes), id(5), varint(30, bytes), id(30)]),
    0,
    0,
  ]),
]

t.test('long headers are parsed', async (t) => {
  for (const [why, datagram, answer, type] of HEADERS) {
    const { view, start, end } = placed(datagram)
    const header = new LongHeader()
    t.equal(readLongHeader(view, start, end, header), answer, why)
    if (type !== undefined) t.equal(header.packetType, type, why)
    if (answer === 0) t.equal(header.packetEnd, end, why)
  }
  const header = new LongHeader()
  const { view, bytes, start, end } = placed(quicRetry({ dcid: id(8), scid: id(4), token: id(60) }))
  t.equal(readLongHeader(view, start, end, header), 0)
  t.same(Buffer.from(bytes.slice(header.dcidStart, header.dcidEnd)), id(8))
  t.same(Buffer.from(bytes.slice(header.scidStart, header.scidEnd)), id(4))
  t.same(Buffer.from(bytes.slice(header.tokenStart, header.tokenEnd)), id(60))
})

t.test('a packet with one changed byte is not decrypted', async (t) => {
  const packet = quicInitial({ dcid: DCID, scid: SCID, token: fill(1)(20), frames: FRAMES, packetNumberBytes: 2 })
  const opened: number[] = []
  for (let at = 0; at < packet.length; at++) {
    for (const bit of [1, 0x08, 0x80]) {
      const changed = Buffer.from(packet)
      changed[at] = (changed[at] ?? 0) ^ bit
      // Also with keys from the original connection ID: a changed header is associated data, so
      // decryption fails.
      for (const keyDcid of [undefined, DCID])
        if (see(changed, keyDcid).packets.some(({ plaintext }) => plaintext !== undefined)) opened.push(at)
    }
  }
  t.same(opened, [])
})

t.test('a datagram truncated at any byte is not decrypted and not read beyond its end', async (t) => {
  const packet = quicInitial({ dcid: DCID, scid: SCID, token: fill(1)(70), frames: FRAMES, packetNumberBytes: 4 })
  for (let length = 0; length < packet.length; length++) {
    const { packets, fault } = see(packet.subarray(0, length))
    if (packets.length > 0 || (length > 0 && fault === 0))
      t.fail(`${length} bytes: ${packets.length} packets, ${fault}`)
    // A view of exactly this length, which throws if the decoder reads beyond it.
    const exact = Uint8Array.prototype.slice.call(packet, 0, length)
    if (readLongHeader(new DataView(exact.buffer), 0, length, new LongHeader()) === 0)
      t.fail(`${length} bytes are read`)
  }
  // The Length field is correct for the truncated payload, but the payload is too short for sample
  // or tag, or the tag is wrong.
  for (let length = 0; length < 60; length++) {
    const bytes = longHeader(0xc0, 1, DCID, SCID, [varint(0), varint(length), fill(length)(length)])
    t.equal(see(bytes).packets[0]?.plaintext, undefined)
  }
})

type Frames = readonly [offset: number, bytes: string][]
const many = Array.from({ length: 500 }, (_, index) => [index % 70, (index * 300) % 20_000] as const)
const WALKS: readonly [why: string, plaintext: readonly Buffer[], frames: Frames, answer: number][] = [
  ['nothing', [], [], NO_MORE_FRAMES],
  ['PADDING', [padding(1)], [], NO_MORE_FRAMES],
  ['much PADDING', [padding(1163)], [], NO_MORE_FRAMES],
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((bytes): [string, Buffer[], Frames, number] => [
    `PADDING of ${bytes} around`,
    [padding(bytes), cryptoFrame(0, Buffer.from('ab')), padding(bytes)],
    [[0, 'ab']],
    NO_MORE_FRAMES,
  ]),
  ['PING', [ping(), ping()], [], NO_MORE_FRAMES],
  ['CRYPTO', [cryptoFrame(70_000, Buffer.from('ab'))], [[70_000, 'ab']], NO_MORE_FRAMES],
  ['CRYPTO without data', [cryptoFrame(3, Buffer.alloc(0)), ping()], [[3, '']], NO_MORE_FRAMES],
  [
    'CRYPTO, numbers in 8 bytes',
    [varint(6), varint(1, 8), varint(2, 8), Buffer.from('ab')],
    [[1, 'ab']],
    NO_MORE_FRAMES,
  ],
  ['CRYPTO of a high offset', [cryptoFrame(2 ** 61, Buffer.from('a'))], [[2 ** 61, 'a']], NO_MORE_FRAMES],
  ['ACK', [ack({ largest: 3 }), cryptoFrame(0, Buffer.from('a'))], [[0, 'a']], NO_MORE_FRAMES],
  [
    'ACK of many ranges',
    [ack({ largest: 2 ** 40, delay: 99_999, ranges: many }), cryptoFrame(0, Buffer.from('a'))],
    [[0, 'a']],
    NO_MORE_FRAMES,
  ],
  [
    'ACK_ECN of many ranges',
    [ack({ largest: 9, ranges: many, ecn: [70, 1, 2 ** 33] }), cryptoFrame(0, Buffer.from('a'))],
    [[0, 'a']],
    NO_MORE_FRAMES,
  ],
  ['ACK whose count lies', [varint(2), varint(9), varint(0), varint(2 ** 50), padding(900)], [], FRAMES_MALFORMED],
  ['ACK_ECN without counts', [ack({ largest: 9, ecn: [1, 2, 3] }).subarray(0, -3)], [], FRAMES_MALFORMED],
  ['CONNECTION_CLOSE', [connectionClose(10, 'why'), cryptoFrame(0, Buffer.from('a'))], [[0, 'a']], NO_MORE_FRAMES],
  ['CONNECTION_CLOSE, cut', [connectionClose(10, 'why').subarray(0, -1)], [], FRAMES_MALFORMED],
  ['CONNECTION_CLOSE of an application', [varint(0x1d), padding(9)], [], FRAMES_MALFORMED],
  ['STREAM', [cryptoFrame(0, Buffer.from('a')), varint(8), padding(9)], [[0, 'a']], FRAMES_MALFORMED],
  ['a type in two bytes', [varint(6, 2), padding(9)], [], FRAMES_MALFORMED],
  ['CRYPTO beyond the end', [varint(6), varint(0), varint(3), Buffer.from('ab')], [], FRAMES_MALFORMED],
  ['CRYPTO of 2^61 bytes', [varint(6), varint(0), varint(2 ** 61), Buffer.from('ab')], [], FRAMES_MALFORMED],
]

function walk(plaintext: Buffer): { frames: [number, string][]; answer: number } {
  const { view, start, end } = placed(plaintext)
  const frame = new CryptoFrame()
  const frames: [number, string][] = []
  let next = start
  for (;;) {
    const behind = nextCryptoFrame(view, next, end, frame)
    if (behind < 0) return { frames, answer: behind }
    if (behind <= next || frame.start > frame.end || frame.end !== behind || behind > end)
      throw new Error('no progress')
    next = behind
    const data = plaintext.subarray(frame.start - start, frame.end - start)
    frames.push([frame.offset, data.toString('latin1')])
  }
}

t.test('frames of an Initial are parsed', async (t) => {
  for (const [why, parts, frames, answer] of WALKS) t.same(walk(Buffer.concat(parts)), { frames, answer }, why)
})

t.test('frames truncated anywhere are malformed, or end between two frames', async (t) => {
  const whole = [
    ack({ largest: 70, delay: 99_999, ranges: many.slice(0, 5), ecn: [70, 1, 2 ** 33] }),
    ping(),
    cryptoFrame(70_000, Buffer.from('abcdefgh')),
    connectionClose(10, 'why'),
    cryptoFrame(0, Buffer.alloc(300, 'x')),
  ]
  const borders = whole.map((_, index) => Buffer.concat(whole.slice(0, index)).length)
  const bytes = Buffer.concat(whole)
  for (let length = 0; length < bytes.length; length++) {
    const answer = borders.includes(length) ? NO_MORE_FRAMES : FRAMES_MALFORMED
    if (walk(bytes.subarray(0, length)).answer !== answer) t.fail(`${length} bytes`)
  }
  t.equal(walk(bytes).frames.length, 2)
})

t.test(
  `${MUTATIONS} mutated datagrams cause no exception, and offsets stay within the bytes (seed ${SEED})`,
  async (t) => {
    const seeds = [
      ...[QUIC_V1, QUIC_V2, 0xff00_001d].flatMap((version) =>
        initialDatagrams(LARGE_HELLO, {
          version,
          dcid: DCID,
          scid: SCID,
          datagrams: 2,
          pieces: 20,
          token: fill(3)(40),
        }),
      ),
      Buffer.concat([
        quicInitial({ dcid: DCID, frames: FRAMES }),
        quicLongOther({ type: 'zeroRtt', dcid: DCID, bytes: 50 }),
        quicInitial({ dcid: DCID, packetNumber: 1, frames: ping() }),
      ]),
      quicRetry({ dcid: DCID, scid: SCID, token: fill(4)(80) }),
      ...HEADERS.map(([, bytes]) => bytes),
    ]
    const random = fill(SEED)
    const draw = (below: number) => (below === 0 ? 0 : random(4).readUInt32BE() % below)
    let opened = 0
    for (let mutation = 0; mutation < MUTATIONS; mutation++) {
      const datagram = Buffer.from(seeds[draw(seeds.length)] as Buffer)
      for (let flips = draw(4); flips > 0 && datagram.length > 0; flips--)
        datagram[draw(draw(2) === 0 ? Math.min(datagram.length, 40) : datagram.length)] = draw(256)
      // see() throws if offsets are out of order or beyond the end.
      const { packets } = see(draw(3) === 0 ? datagram.subarray(0, draw(datagram.length + 1)) : datagram, DCID)
      if (packets.some(({ plaintext }) => plaintext !== undefined)) opened++
      // Frames without packet protection, so that the frame parser gets input that the tag would
      // reject.
      const plain = Buffer.concat([ack({ largest: 9, ranges: many.slice(0, 9) }), FRAMES.subarray(0, 90), padding(9)])
      for (let flips = 1 + draw(4); flips > 0; flips--) plain[draw(plain.length)] = draw(256)
      walk(plain)
    }
    t.ok(opened > MUTATIONS / 100, `${opened} opened all the same`)
  },
)
