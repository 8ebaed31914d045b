import {
  connectRequest,
  proxyV1,
  proxyV2,
  socks4aRequest,
  socks5Greeting,
  socks5Request,
} from '../support/packets-proxy.ts'
import { TcpStream } from '../support/packets-tcp-stream.ts'
import { clientHello, encryptedClientHello, tlsRecords } from '../support/packets-tls.ts'
import type { ExpectedName, GeneratedCapture } from './generated-capture.ts'
import { everyMillisecond, frames, reported, type UntimedPacket } from './parties.ts'

/** Handshakes with proxies, and PROXY headers of hosts that are no load balancers. */
export function proxyCases(): Record<string, GeneratedCapture> {
  return { 'proxy-connect': connect(), 'proxy-socks': socks(), 'proxy-header-untrusted': proxyHeader() }
}

const PROXY = '203.0.113.80'
const hello = (serverName: string) => tlsRecords(clientHello({ serverName, grease: true }))
const ech = tlsRecords(
  clientHello({ serverName: 'public.example.org', grease: true, moreExtensions: [encryptedClientHello()] }),
)

interface Row {
  readonly messages: readonly Buffer[]
  /** The name in the handshake, and that of the hello if it differs. */
  readonly target?: string
  readonly inner?: string
  readonly ech?: true
}

function capture(about: string, serverPort: number, via: ExpectedName['via'], rows: readonly Row[]): GeneratedCapture {
  const packets = rows.flatMap(({ messages, target, inner, ech }, index): UntimedPacket[] => {
    const server = serverPort === 443 ? '203.0.113.9' : PROXY
    const stream = new TcpStream({ clientPort: 50_001 + index, server, serverPort }, Buffer.concat(messages))
    const names = [
      ...(target === undefined || via === undefined ? [] : [{ ...reported('tls', stream, target), via }]),
      ...(inner === undefined ? [] : [{ ...reported('tls', stream, inner), ...(ech === true ? { ech } : {}) }]),
    ]
    return [...frames(stream.open()), ...frames([stream.send()], names)]
  })
  return {
    about: `${about}\n`,
    packets: everyMillisecond(packets),
    tsharkDiffers:
      "tshark shows only the names of ClientHellos, and none that shares a segment with a proxy's handshake.",
  }
}

function connect(): GeneratedCapture {
  const target = 'tunnelled.example.org'
  const request = connectRequest(`${target}:443`)
  const authorized = connectRequest(`${target}:443`, ['Proxy-Authorization: Basic dXNlcjp3b3Jk'])
  return capture(
    'CONNECT requests to an HTTP proxy: alone, with a ClientHello in the same segment, repeated with a password, to an address, and before a ClientHello with Encrypted Client Hello.',
    3128,
    'connect',
    [
      { messages: [request], target },
      { messages: [request, hello(target)], target },
      { messages: [request, hello('other.example.org')], target, inner: 'other.example.org' },
      { messages: [request, authorized, hello(target)], target },
      { messages: [connectRequest('192.0.2.9:443'), hello(target)], inner: target },
      { messages: [request, ech], target, inner: 'public.example.org', ech: true },
    ],
  )
}

function socks(): GeneratedCapture {
  const target = 'tunnelled.example.org'
  return capture(
    'SOCKS 4A and SOCKS 5, with and without a password, to a name and to an address, with a ClientHello in the same segment.',
    1080,
    'socks',
    [
      { messages: [socks4aRequest(target, 'user'), hello(target)], target },
      { messages: [socks5Greeting(), socks5Request(target), hello(target)], target },
      {
        messages: [socks5Greeting('user', 'word'), socks5Request(target), ech],
        target,
        inner: 'public.example.org',
        ech: true,
      },
      { messages: [socks5Greeting(), socks5Request('192.0.2.9'), hello(target)], inner: target },
    ],
  )
}

function proxyHeader(): GeneratedCapture {
  const header = { client: '192.0.2.77', server: '192.0.2.1', clientPort: 4711, serverPort: 443 }
  const inner = 'inner.example.org'
  return capture(
    "PROXY headers of versions 1 and 2 from a host that is not configured as a load balancer: they are skipped, and the ClientHello is the sender's own.",
    443,
    undefined,
    [
      { messages: [proxyV1(header), hello(inner)], inner },
      { messages: [proxyV2({ ...header, serverName: 'forged.example.org' }), hello(inner)], inner },
    ],
  )
}
