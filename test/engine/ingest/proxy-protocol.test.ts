import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { readProxyHeader, takeProxyHeader } from '../../../engine/ingest/proxy-protocol.ts'
import * as fc from '../../support/property.ts'
import { proxyHeader } from '../../support/syslog-sender.ts'

const ipv4 = proxyHeader('203.0.113.7')
const ipv6 = proxyHeader('2001:db8:0:0:0:0:0:7')

function changed(header: Buffer, at: number, value: number): Buffer {
  const bytes = Buffer.from(header)
  bytes[at] = value
  return bytes
}

function withTlvs(header: Buffer, bytes: number): Buffer {
  const longer = Buffer.concat([header, Buffer.alloc(bytes, 4)])
  longer.writeUInt16BE(longer.length - 16, 14)
  return longer
}

const rows: { name: string; bytes: Buffer; found: ReturnType<typeof readProxyHeader> }[] = [
  { name: 'IPv4', bytes: ipv4, found: { address: '203.0.113.7', bytes: 28 } },
  { name: 'IPv6', bytes: ipv6, found: { address: '2001:db8::7', bytes: 52 } },
  {
    name: 'with data after it',
    bytes: Buffer.concat([ipv4, Buffer.from('<13>x')]),
    found: { address: '203.0.113.7', bytes: 28 },
  },
  { name: 'with TLVs', bytes: withTlvs(ipv4, 300), found: { address: '203.0.113.7', bytes: 328 } },
  { name: 'LOCAL', bytes: proxyHeader('203.0.113.7', 0), found: { address: '', bytes: 28 } },
  {
    name: 'LOCAL without addresses',
    bytes: Buffer.concat([ipv4.subarray(0, 12), Buffer.from([0x20, 0, 0, 0])]),
    found: { address: '', bytes: 16 },
  },
  { name: 'an unspecified family', bytes: changed(ipv4, 13, 0), found: { address: '', bytes: 28 } },
  { name: 'UDP over IPv4', bytes: changed(ipv4, 13, 0x12), found: 'none' },
  { name: 'a Unix socket', bytes: changed(ipv4, 13, 0x31), found: 'none' },
  { name: 'version 1 in binary', bytes: changed(ipv4, 12, 0x11), found: 'none' },
  { name: 'another command', bytes: changed(ipv4, 12, 0x22), found: 'none' },
  { name: 'addresses too short for IPv4', bytes: changed(ipv4, 15, 11), found: 'none' },
  { name: 'addresses of IPv4 for IPv6', bytes: changed(ipv4, 13, 0x21), found: 'none' },
  { name: 'more bytes than any sender needs', bytes: changed(ipv4, 14, 0x11), found: 'none' },
  { name: 'version 1 as text', bytes: Buffer.from('PROXY TCP4 203.0.113.7 203.0.113.8 1 2\r\n'), found: 'none' },
  { name: 'a message', bytes: Buffer.from('<13>x'), found: 'none' },
  { name: 'nothing yet', bytes: Buffer.alloc(0), found: 'incomplete' },
]

for (const { name, bytes, found } of rows) {
  t.test(name, async (t) => {
    t.same(readProxyHeader(bytes), found)
    if (typeof found !== 'object') return
    for (let length = 0; length < found.bytes; length++) {
      t.equal(readProxyHeader(bytes.subarray(0, length)), 'incomplete', `${length} bytes of it`)
    }
  })
}

t.test('a wrong signature is detected at its first wrong byte', async (t) => {
  for (let at = 0; at < 12; at++) t.equal(readProxyHeader(changed(ipv4, at, 0x58).subarray(0, at + 1)), 'none')
})

t.test('no bytes cause an exception, and no header exceeds them', async () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 80 }),
    fc.uint8Array({ maxLength: 80 }).map((tail) => Buffer.concat([ipv4.subarray(0, 12), tail])),
  )
  fc.assert(
    fc.property(bytes, (some) => {
      const found = readProxyHeader(Buffer.from(some))
      return typeof found === 'string' || (found.bytes <= some.length && found.bytes >= 16)
    }),
    { numRuns: 5000 },
  )
})

t.test('bytes after the header are returned, wherever the chunks end', async (t) => {
  const stream = Buffer.concat([ipv6, Buffer.from('<13>one\n<13>two\n')])
  for (let at = 1; at < stream.length; at++) {
    const socket = new PassThrough() as unknown as Socket & PassThrough
    const taken = takeProxyHeader(socket)
    socket.write(stream.subarray(0, at))
    socket.end(stream.subarray(at))
    t.equal(await taken, '2001:db8::7')
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.resume()
    await new Promise((resolve) => socket.once('end', resolve))
    t.equal(Buffer.concat(chunks).toString(), '<13>one\n<13>two\n', `split at ${at}`)
  }
})
