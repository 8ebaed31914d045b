import { encode } from 'dns-packet'
import t from 'tap'
import { ipFrame, udp } from '../../support/packets.ts'
import { dnsMessage, dnsQuery, labels, pointer, ROOT, TYPE_A_IN } from '../../support/packets-dns.ts'
import * as fc from '../../support/property.ts'
import { FrameDecoder } from '../decode-frames.ts'

const decoder = new FrameDecoder()

function frameOf(message: Buffer, sourcePort = 50_000, destinationPort = 53): Buffer {
  return ipFrame({ source: '10.0.0.7', destination: '192.0.2.53' }, udp({ sourcePort, destinationPort }, message))
}

const label = fc.stringMatching(/^[a-zA-Z0-9_-]{1,63}$/)
const name = fc.array(label, { minLength: 1, maxLength: 8 }).map((parts) => parts.join('.'))
const legalName = name.filter((text) => text.length <= 253)

t.test('names encoded by dns-packet are decoded, in lower case', async () => {
  fc.assert(
    fc.property(fc.array(legalName, { minLength: 1, maxLength: 5 }), fc.nat(65_535), (names, id) => {
      const message = encode({ type: 'query', id, questions: names.map((asked) => ({ type: 'A', name: asked })) })
      const found = decoder.one(frameOf(message))
      const expected = names.map((asked) => asked.toLowerCase())
      return found.packetClass === 'dnsQuery' && JSON.stringify(found.names) === JSON.stringify(expected)
    }),
    { numRuns: 500 },
  )
})

t.test('a name of arbitrary bytes is escaped, so that labels and bytes remain distinct', async () => {
  const anyLabel = fc.uint8Array({ minLength: 1, maxLength: 63 }).map((bytes) => Buffer.from(bytes))
  fc.assert(
    fc.property(fc.array(anyLabel, { minLength: 1, maxLength: 3 }), (parts) => {
      const found = decoder.one(frameOf(dnsMessage({ questions: 1 }, labels(...parts), ROOT, TYPE_A_IN)))
      const unescaped = (text: string) =>
        text.replace(/\\(\d{3})/g, (_match, code: string) => String.fromCharCode(Number(code)))
      const back = (found.names[0] ?? '').split('.').map(unescaped)
      const expected = parts.map((part) => part.toString('latin1').replace(/[A-Z]/g, (letter) => letter.toLowerCase()))
      return JSON.stringify(back) === JSON.stringify(expected)
    }),
    { numRuns: 300 },
  )
})

t.test('names that share suffixes by pointers equal the uncompressed names', async () => {
  fc.assert(
    fc.property(legalName, label, (base, first) => {
      const parts = base.split('.')
      if (base.length + first.length > 250) return true
      const message = dnsMessage(
        { questions: 2 },
        labels(...parts),
        ROOT,
        TYPE_A_IN,
        labels(first),
        pointer(12),
        TYPE_A_IN,
      )
      const found = decoder.one(frameOf(message))
      return found.packetClass === 'dnsQuery' && found.names[1] === `${first}.${base}`.toLowerCase()
    }),
    { numRuns: 300 },
  )
})

t.test('a chain of pointers is followed up to the length limit', async (t) => {
  const chain = (pointers: number) => {
    const message = dnsMessage({ questions: pointers + 1 }, labels('ai'), ROOT, TYPE_A_IN)
    const parts = [message]
    let target = 12
    let end = message.length
    for (let index = 0; index < pointers; index++) {
      parts.push(pointer(target), TYPE_A_IN)
      target = end
      end += 6
    }
    return Buffer.concat(parts)
  }
  t.equal(decoder.one(frameOf(chain(100))).names.length, 101)
  t.equal(decoder.one(frameOf(chain(127))).packetClass, 'dnsQuery')
  t.equal(decoder.one(frameOf(chain(128))).packetClass, 'dnsMalformed')
})

const rows: readonly {
  name: string
  message: Buffer
  ports?: readonly [number, number]
  packetClass: string
  names?: string[]
}[] = [
  {
    name: 'a response',
    message: dnsMessage({ flags: 0x8180, questions: 1 }, labels('a'), ROOT, TYPE_A_IN),
    packetClass: 'dnsResponse',
  },
  {
    name: 'a NOTIFY',
    message: dnsMessage({ flags: 0x2000, questions: 1 }, labels('a'), ROOT, TYPE_A_IN),
    packetClass: 'dnsOther',
  },
  {
    name: 'a query from port 53 to port 53',
    message: dnsQuery(['a.b']),
    ports: [53, 53],
    packetClass: 'dnsQuery',
    names: ['a.b'],
  },
  { name: 'a query to another port', message: dnsQuery(['a.b']), ports: [5000, 5353], packetClass: 'udpOther' },
  { name: 'a truncated header', message: dnsQuery(['a.b']).subarray(0, 11), packetClass: 'truncated' },
  {
    name: 'a label that extends beyond the end',
    message: dnsQuery(['abc.de']).subarray(0, 15),
    packetClass: 'truncated',
  },
  {
    name: 'a pointer without its second byte',
    message: dnsMessage({ questions: 1 }, Buffer.from([0xc0])),
    packetClass: 'truncated',
  },
  {
    name: 'a name of 255 octets',
    message: dnsMessage(
      { questions: 1 },
      labels(...['a', 'b', 'c'].map((c) => c.repeat(63)), 'd'.repeat(61)),
      ROOT,
      TYPE_A_IN,
    ),
    packetClass: 'dnsQuery',
    names: [[...['a', 'b', 'c'].map((c) => c.repeat(63)), 'd'.repeat(61)].join('.')],
  },
  {
    name: 'a name of 256 octets',
    message: dnsMessage(
      { questions: 1 },
      labels(...['a', 'b', 'c'].map((c) => c.repeat(63)), 'd'.repeat(62)),
      ROOT,
      TYPE_A_IN,
    ),
    packetClass: 'dnsMalformed',
  },
  {
    name: 'a name that exceeds 255 octets only through a pointer',
    message: dnsMessage(
      { questions: 2 },
      labels(...['a', 'b', 'c'].map((c) => c.repeat(63))),
      ROOT,
      TYPE_A_IN,
      labels('d'.repeat(63)),
      pointer(12),
      TYPE_A_IN,
    ),
    packetClass: 'dnsMalformed',
    names: [['a', 'b', 'c'].map((c) => c.repeat(63)).join('.')],
  },
]

for (const row of rows) {
  t.test(row.name, async (t) => {
    const [sourcePort, destinationPort] = row.ports ?? [50_000, 53]
    const found = decoder.one(frameOf(row.message, sourcePort, destinationPort))
    t.equal(found.packetClass, row.packetClass)
    t.same(found.names, row.names ?? [])
  })
}
