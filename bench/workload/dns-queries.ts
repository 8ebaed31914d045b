import { writeFileSync } from 'node:fs'
import { ipFrame, udp } from '../../test/support/packets.ts'
import { dnsQuery } from '../../test/support/packets-dns.ts'
import { framesAt, pcapFile } from '../../test/support/packets-pcap.ts'

const CLIENTS = 2000
const NAMES = ['chatgpt.com', 'claude.ai', 'api.openai.com', 'gemini.google.com']

/** DNS queries of 2,000 clients for four names of AI platforms, about 80 bytes each. */
export function writeDnsQueries(path: string, queries: number): void {
  const frames = Array.from({ length: queries }, (_query, index) => {
    // Strides without a common divisor mix clients and names.
    const client = (index * 7919) % CLIENTS
    const name = NAMES[(index * 31 + client) % NAMES.length] as string
    const addresses = { source: `10.1.${client >> 8}.${client & 255}`, destination: '10.9.0.2' }
    const ports = { sourcePort: 1024 + ((index * 31) % 60_000), destinationPort: 53 }
    return ipFrame(addresses, udp(ports, dnsQuery([name])))
  })
  writeFileSync(path, pcapFile(framesAt(Date.UTC(2026, 2, 3), frames)))
}
