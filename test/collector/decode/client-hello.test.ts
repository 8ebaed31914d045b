import t from 'tap'
import { ipFrame, tcp, u24 } from '../../support/packets.ts'
import { clientHello, tlsRecords } from '../../support/packets-tls.ts'
import * as fc from '../../support/property.ts'
import { FrameDecoder } from '../decode-frames.ts'

const decoder = new FrameDecoder()
let connection = 0
/** Each hello on its own connection. */
const frameOf = (payload: Buffer, destinationPort = 443) => {
  connection++
  const source = `10.0.${connection >> 8}.${connection & 0xff}`
  const segment = tcp({ sourcePort: 50_001, destinationPort }, payload)
  return ipFrame({ source, destination: '203.0.113.9' }, segment)
}
const hello = clientHello({ serverName: 'www.ChatGPT.com', grease: true })

t.test('the name is found in a hello split into records at any point', async () => {
  fc.assert(
    fc.property(
      fc.boolean(),
      fc.boolean(),
      fc.boolean(),
      fc.integer({ min: 1, max: 3000 }),
      fc.integer({ min: 0, max: 32 }),
      (grease, postQuantum, serverNameLast, fragmentBytes, sessionIdBytes) => {
        const message = clientHello({
          serverName: 'api.openai.com',
          grease,
          postQuantum,
          serverNameLast,
          sessionIdBytes,
        })
        const found = decoder.one(frameOf(tlsRecords(message, fragmentBytes)))
        return found.packetClass === 'clientHello' && found.names[0] === 'api.openai.com'
      },
    ),
    { numRuns: 300 },
  )
})

t.test(
  'a hello truncated at any byte is incomplete, never malformed; at the end its name is reported if present',
  async (t) => {
    for (const records of [tlsRecords(hello), tlsRecords(hello, 50)]) {
      let first = 0
      for (let length = 1; length < records.length; length++) {
        const one = new FrameDecoder()
        const { packetClass, names } = one.one(frameOf(records.subarray(0, length)))
        t.equal(packetClass, 'clientHelloPart', `truncated at byte ${length}`)
        t.same(names, [])
        const atEnd = one.pass({ last: true }).map(({ name }) => name)
        if (atEnd.length > 0 && first === 0) first = length
        t.same(atEnd, first > 0 ? ['www.chatgpt.com'] : [])
        // Up to five bytes cannot be identified as a ClientHello.
        t.equal(one.counters.helloIncomplete, first > 0 || length < 6 ? 0 : 1)
      }
      t.ok(first > 0)
      t.same(decoder.one(frameOf(records)).names, ['www.chatgpt.com'])
    }
  },
)

/** The hello with two bytes replaced, at `offset` from the position of `find`. */
function withLength(find: Buffer, offset: number, value: number): Buffer {
  const copy = Buffer.from(tlsRecords(hello))
  copy.writeUInt16BE(value, copy.indexOf(find) + offset)
  return copy
}

const serverName = Buffer.from('www.ChatGPT.com')
const rows: readonly { name: string; payload: Buffer; packetClass: string; names?: string[]; port?: number }[] = [
  {
    name: 'a hello on an unusual port',
    payload: tlsRecords(hello),
    port: 8443,
    packetClass: 'clientHello',
    names: ['www.chatgpt.com'],
  },
  {
    name: 'no extensions at all',
    payload: tlsRecords(
      Buffer.concat([
        Buffer.from([1]),
        u24(41),
        Buffer.from([3, 3]),
        Buffer.alloc(32),
        Buffer.from([0, 0, 2, 0, 5, 1, 0]),
      ]),
    ),
    packetClass: 'clientHelloNoName',
  },
  { name: 'a hello without server_name', payload: tlsRecords(clientHello({})), packetClass: 'clientHelloNoName' },
  { name: 'a name longer than its list', payload: withLength(serverName, -2, 16), packetClass: 'clientHelloMalformed' },
  {
    name: 'an extension longer than all extensions',
    payload: withLength(serverName, -7, 4000),
    packetClass: 'clientHelloMalformed',
  },
  { name: 'an unknown name type', payload: withLength(serverName, -3, 0x0100), packetClass: 'clientHelloNoName' },
  {
    name: 'a ServerHello',
    payload: Buffer.concat([Buffer.from([22, 3, 3, 0, 4, 2]), Buffer.alloc(3)]),
    packetClass: 'tcpOther',
  },
  {
    name: 'SSL 2.0',
    payload: Buffer.concat([Buffer.from([0x80, 0x2e, 1, 3, 1]), Buffer.alloc(41)]),
    packetClass: 'tcpOther',
  },
  { name: 'HTTP', payload: Buffer.from('GET / HTTP/1.1\r\nHost: chatgpt.com\r\n\r\n'), packetClass: 'tcpOther' },
  { name: 'a record without content', payload: Buffer.from([22, 3, 1, 0, 0, 1, 0, 0]), packetClass: 'tcpOther' },
  {
    name: 'a hello of 16 MB',
    payload: Buffer.concat([Buffer.from([22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff]), Buffer.alloc(99)]),
    packetClass: 'clientHelloMalformed',
  },
  {
    name: 'a hello shorter than its fixed part',
    payload: tlsRecords(Buffer.concat([Buffer.from([1]), u24(10), Buffer.alloc(10)])),
    packetClass: 'clientHelloMalformed',
  },
]
for (const row of rows) {
  t.test(row.name, async (t) => {
    const found = decoder.one(frameOf(row.payload, row.port))
    t.equal(found.packetClass, row.packetClass)
    t.same(found.names, row.names ?? [])
  })
}
