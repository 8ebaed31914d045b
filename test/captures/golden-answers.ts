import { INFERRED_NAMES, type NamedCase } from '../../collector/commands/selftest.ts'
import { addressBytes, ipFrame, tcp, udp } from '../support/packets.ts'
import { dnsAnswer, wireName } from '../support/packets-dns.ts'
import { initialDatagrams } from '../support/packets-quic.ts'
import { clientHello, fill, tlsRecords } from '../support/packets-tls.ts'
import { CLIENT, RESOLVER } from './parties.ts'

/** The frames of a case, which contain exactly one name. */
export interface Wire {
  readonly case: string
  readonly method: NamedCase['method']
  readonly ech?: true
  /** The name, if it is not below selftest.example. */
  readonly nameOf?: (label: string) => string
  /** `port` is the client port of this case. */
  readonly frames: (name: string, port: number) => readonly Buffer[]
}

const nameOf = (label: string): string => `${label}.${INFERRED_NAMES}`
/** A server for each case, since an address that two names have explains nothing. */
const serverOf = (port: number): string => `203.0.113.${100 + ((port / 10) % 100)}`

function answered(name: string, port: number): Buffer {
  const message = dnsAnswer(name, [{ type: 1, ttl: 300, data: addressBytes(serverOf(port)) }])
  return ipFrame({ source: RESOLVER, destination: CLIENT }, udp({ sourcePort: 53, destinationPort: port }, message))
}

function hello(port: number): Buffer {
  const segment = tcp({ sourcePort: port, destinationPort: 443 }, tlsRecords(clientHello({})))
  return ipFrame({ source: CLIENT, destination: serverOf(port) }, segment)
}

/** Connections whose name is hidden, after the answer that explains them. */
export const ANSWERED: readonly Wire[] = [
  {
    ...{ case: 'hello without a name, after a DNS answer', method: 'tls_inferred', nameOf },
    frames: (name, port) => [answered(name, port), hello(port)],
  },
  {
    ...{ case: 'QUIC of an unknown version, after a DNS answer', method: 'quic_inferred', nameOf },
    frames: (name, port) => [
      answered(name, port),
      ...initialDatagrams(clientHello({}), { ...{ dcid: fill(port)(8), datagrams: 1, version: 0x5130_3436 } }).map(
        (bytes) =>
          ipFrame(
            { source: CLIENT, destination: serverOf(port) },
            udp({ sourcePort: port, destinationPort: 443 }, bytes),
          ),
      ),
    ],
  },
  {
    ...{ case: 'alias in a DNS answer', method: 'dns_alias', nameOf },
    frames: (name, port) => [
      ipFrame(
        { source: RESOLVER, destination: CLIENT },
        udp(
          { sourcePort: 53, destinationPort: port },
          dnsAnswer('asked.selftest.example', [{ type: 5, ttl: 300, data: wireName(name) }]),
        ),
      ),
    ],
  },
]
