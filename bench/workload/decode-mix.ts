import { closeSync, openSync, writeSync } from 'node:fs'
import { ipFrame, type Transport, tcp, udp } from '../../test/support/packets.ts'
import { dnsQuery } from '../../test/support/packets-dns.ts'
import { framesAt, pcapFile } from '../../test/support/packets-pcap.ts'
import { initialDatagrams } from '../../test/support/packets-quic.ts'
import { applicationData, clientHello, fill, tlsRecords } from '../../test/support/packets-tls.ts'

/**
 * The traffic of an office link, by seed: 10 % DNS queries; 4 % ClientHellos, half of them
 * post-quantum in two segments; 1 % QUIC Initials with a hello each; the rest data of 1.2 kB from
 * servers. Two of six names are of an AI platform.
 */
const HOSTS = [
  'chatgpt.com',
  'www.example.org',
  'api.anthropic.com',
  'cdn.example.net',
  'news.example.com',
  'intranet.example',
]
const MSS = 1460
const BULK_BYTES = 1140
const START_MS = Date.UTC(2026, 2, 3)
/**
 * Third octet of the source address, after Ethernet. Changed for each repetition, so that no
 * connection repeats.
 */
const VARIED_OCTET = 14 + 12 + 2

export interface Mix {
  readonly frames: readonly Buffer[]
  /** Names in the frames: DNS, TLS and QUIC. */
  readonly names: { readonly dns: number; readonly tls: number; readonly quic: number }
  /**
   * The frames with QUIC Initials, and a function that creates each again for another connection.
   */
  readonly initials: readonly { readonly at: number; readonly make: (connectionId: Buffer) => Buffer }[]
}

type MixPart = 'dns' | 'hello' | 'postQuantum' | 'quic' | 'bulk'

/** About `packets` frames in the proportions of the mix. */
export function decodeMix(packets: number, seed: number): Mix {
  const bytes = fill(seed)
  const frames: Buffer[] = []
  const names = { dns: 0, tls: 0, quic: 0 }
  const initials: { at: number; make: (connectionId: Buffer) => Buffer }[] = []
  for (let index = 0; frames.length < packets; index++) {
    const part = partOf(index)
    const host = HOSTS[index % HOSTS.length] as string
    // Ports that no peer takes for a known protocol (RFC 6335 §6).
    const sourcePort = 49_152 + (index % 16_000)
    const addresses = { source: `10.1.0.${1 + (index % 250)}`, destination: `198.51.100.${1 + (index % 241)}` }
    const put = (transport: Transport) => frames.push(ipFrame(addresses, transport))
    switch (part) {
      case 'dns':
        put(udp({ sourcePort, destinationPort: 53 }, dnsQuery([host])))
        names.dns++
        break
      case 'hello':
        put(tcp({ sourcePort, destinationPort: 443 }, tlsRecords(clientHello({ serverName: host, seed: index }))))
        names.tls++
        break
      case 'postQuantum': {
        const hello = tlsRecords(clientHello({ serverName: host, postQuantum: true, grease: true, seed: index }))
        put(tcp({ sourcePort, destinationPort: 443, sequence: 1 }, hello.subarray(0, MSS)))
        put(tcp({ sourcePort, destinationPort: 443, sequence: 1 + MSS }, hello.subarray(MSS)))
        names.tls++
        break
      }
      case 'quic': {
        const hello = clientHello({ serverName: host, seed: index })
        const make = (dcid: Buffer) => {
          const [datagram] = initialDatagrams(hello, { dcid, datagrams: 1 })
          return ipFrame(addresses, udp({ sourcePort, destinationPort: 443 }, datagram as Buffer))
        }
        initials.push({ at: frames.length, make })
        frames.push(make(bytes(8)))
        names.quic++
        break
      }
      case 'bulk':
        put(tcp({ sourcePort: 443, destinationPort: sourcePort }, applicationData(bytes(BULK_BYTES))))
        break
      default:
        part satisfies never
    }
  }
  return { frames, names, initials }
}

function partOf(index: number): MixPart {
  const kind = (index * 37) % 100
  if (kind < 10) return 'dns'
  if (kind < 12) return 'hello'
  if (kind < 14) return 'postQuantum'
  return kind < 15 ? 'quic' : 'bulk'
}

/**
 * Writes the mix to a capture file, `repetitions` times with different clients and, for QUIC,
 * different connection IDs.
 */
export function writeMix(path: string, mix: Mix, repetitions: number): void {
  const frames = [...mix.frames]
  const bytes = fill(repetitions)
  const headerBytes = pcapFile([]).length
  const file = openSync(path, 'w')
  writeSync(file, pcapFile([]))
  for (let repetition = 0; repetition < repetitions; repetition++) {
    if (repetition > 0) for (const { at, make } of mix.initials) frames[at] = make(bytes(8))
    for (const frame of frames) frame[VARIED_OCTET] = repetition
    writeSync(file, pcapFile(framesAt(START_MS + repetition * frames.length, frames)).subarray(headerBytes))
  }
  closeSync(file)
}
