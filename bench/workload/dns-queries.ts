import { writeFileSync } from 'node:fs'
import { ethernet, ipv4, udp } from '../../test/support/packets.ts'
import { dnsQuery } from '../../test/support/packets-dns.ts'
import { framesAt, pcapFile } from '../../test/support/packets-pcap.ts'

const CLIENTS = 2000
const AI_NAMES = ['chatgpt.com', 'claude.ai', 'api.openai.com', 'gemini.google.com']
const OTHER_NAMES = 5000

/**
 * DNS queries of 2,000 clients, about 80 bytes each. One in `everyNth` is for one of four names of
 * AI platforms, the others for one of 5,000 names without a platform.
 */
export function writeDnsQueries(path: string, queries: number, everyNth: number): void {
  const frames = Array.from({ length: queries }, (_query, index) => {
    // Strides without a common divisor mix clients and names.
    const client = (index * 7919) % CLIENTS
    const name =
      index % everyNth === 0
        ? (AI_NAMES[(index * 31 + client) % AI_NAMES.length] as string)
        : `host${(index * 104_729) % OTHER_NAMES}.example.org`
    const addresses = { source: `10.1.${client >> 8}.${client & 255}`, destination: '10.9.0.2' }
    const ports = { sourcePort: 1024 + ((index * 31) % 60_000), destinationPort: 53 }
    return ethernet({}, ipv4(addresses, udp(ports, dnsQuery([name]))))
  })
  writeFileSync(path, pcapFile(framesAt(Date.UTC(2026, 2, 3), frames)))
}
