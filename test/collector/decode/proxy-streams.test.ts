import t, { type Test } from 'tap'
import { type Network, networkOf } from '../../../engine/kernel/process/network.ts'
import {
  connectRequest,
  proxyV1,
  proxyV2,
  socks4aRequest,
  socks5Greeting,
  socks5Request,
} from '../../support/packets-proxy.ts'
import { TcpStream } from '../../support/packets-tcp-stream.ts'
import { clientHello, encryptedClientHello, tlsRecords } from '../../support/packets-tls.ts'
import { FrameDecoder } from '../decode-frames.ts'

/** Handshakes with proxies and PROXY headers, at every segment boundary. */

const BALANCER = '10.9.0.1'
const loadBalancers = [networkOf('10.9.0.0/16') as Network, networkOf('2001:db8:9::/48') as Network]
const hello = tlsRecords(clientHello({ serverName: 'inner.example.org', grease: true }))
const same = tlsRecords(clientHello({ serverName: 'chatgpt.com', grease: true }))
const LONG_FIELD = `Proxy-Authorization: Basic ${'QQ'.repeat(900)}`
const header = { client: '192.0.2.77', server: '192.0.2.1', clientPort: 4711, serverPort: 443 }
const FORGER = { ...header, client: '192.0.2.66' }
const header6 = { ...header, client: '2001:db8::77', server: '2001:db8::1' }

interface Row {
  readonly title: string
  readonly bytes: readonly Buffer[]
  readonly serverPort?: number
  readonly client?: string
  /** `client name` of each name, with `via` if it is not of a hello. */
  readonly names: readonly string[]
}

const ROWS: readonly Row[] = [
  {
    title: 'CONNECT, then a hello with another name',
    bytes: [connectRequest('chatgpt.com:443'), hello],
    names: ['10.0.0.7 chatgpt.com connect', '10.0.0.7 inner.example.org'],
  },
  {
    title: 'CONNECT, then a hello with the same name',
    bytes: [connectRequest('ChatGPT.com:443', ['Proxy-Authorization: Basic dTpw']), same],
    names: ['10.0.0.7 chatgpt.com connect'],
  },
  {
    title: 'CONNECT again with a password',
    bytes: [connectRequest('chatgpt.com:443'), connectRequest('chatgpt.com:443', [LONG_FIELD]), hello],
    names: ['10.0.0.7 chatgpt.com connect', '10.0.0.7 inner.example.org'],
  },
  {
    title: 'CONNECT with bare line feeds, to a name with a final dot',
    bytes: [Buffer.from('CONNECT chatgpt.com.:443 HTTP/1.0\nA: b\n\n'), hello],
    names: ['10.0.0.7 chatgpt.com connect', '10.0.0.7 inner.example.org'],
  },
  ...['192.0.2.1:443', '[2001:db8::1]:443'].map((target) => ({
    title: `CONNECT to ${target}`,
    bytes: [connectRequest(target), hello],
    names: ['10.0.0.7 inner.example.org'],
  })),
  {
    title: 'CONNECT to a port of no proxy',
    bytes: [connectRequest('chatgpt.com:443'), hello],
    serverPort: 80,
    names: ['10.0.0.7 chatgpt.com connect', '10.0.0.7 inner.example.org'],
  },
  {
    title: 'SOCKS 5 to a name',
    bytes: [socks5Greeting(), socks5Request('chatgpt.com'), hello],
    serverPort: 1080,
    names: ['10.0.0.7 chatgpt.com socks', '10.0.0.7 inner.example.org'],
  },
  {
    title: 'SOCKS 5 with user name and password',
    bytes: [socks5Greeting('jdoe', 'secret'), socks5Request('chatgpt.com'), same],
    serverPort: 1080,
    names: ['10.0.0.7 chatgpt.com socks'],
  },
  {
    title: 'SOCKS 5 with an empty user name and password',
    bytes: [socks5Greeting('', ''), socks5Request('chatgpt.com'), same],
    serverPort: 1080,
    names: ['10.0.0.7 chatgpt.com socks'],
  },
  {
    title: 'SOCKS 5 to an address',
    bytes: [socks5Greeting(), socks5Request('192.0.2.1'), hello],
    serverPort: 1080,
    names: ['10.0.0.7 inner.example.org'],
  },
  {
    title: 'SOCKS 4A to a name',
    bytes: [socks4aRequest('chatgpt.com', 'jdoe'), hello],
    serverPort: 1080,
    names: ['10.0.0.7 chatgpt.com socks', '10.0.0.7 inner.example.org'],
  },
  {
    title: 'PROXY version 1 of a load balancer',
    bytes: [proxyV1(header), hello],
    client: BALANCER,
    serverPort: 443,
    names: ['192.0.2.77 inner.example.org'],
  },
  {
    title: 'PROXY version 1 over IPv6',
    bytes: [proxyV1(header6), hello],
    client: BALANCER,
    serverPort: 443,
    names: ['2001:db8::77 inner.example.org'],
  },
  {
    title: 'PROXY version 1 of an unknown client',
    bytes: [Buffer.from('PROXY UNKNOWN\r\n'), hello],
    client: BALANCER,
    serverPort: 443,
    names: [`${BALANCER} inner.example.org`],
  },
  {
    title: 'PROXY version 2 with a server name',
    bytes: [proxyV2({ ...header, serverName: 'chatgpt.com' }), hello],
    client: BALANCER,
    serverPort: 443,
    names: ['192.0.2.77 chatgpt.com proxyHeader', '192.0.2.77 inner.example.org'],
  },
  {
    title: 'PROXY version 2 over IPv6, before CONNECT',
    bytes: [proxyV2(header6), connectRequest('chatgpt.com:443'), same],
    client: '2001:db8:9::1',
    names: ['2001:db8::77 chatgpt.com connect'],
  },
  {
    title: 'PROXY version 2 of the load balancer itself',
    bytes: [proxyV2(header, 0), hello],
    client: BALANCER,
    serverPort: 443,
    names: [`${BALANCER} inner.example.org`],
  },
  ...[proxyV1(header), proxyV2({ ...header, serverName: 'chatgpt.com' })].map((bytes) => ({
    title: `PROXY of another host, ${bytes.length} bytes`,
    bytes: [bytes, hello],
    client: '10.8.0.1',
    serverPort: 443,
    names: ['10.8.0.1 inner.example.org'],
  })),
]

function streamOf({ bytes, serverPort = 3128, client = '10.0.0.7' }: Row, clientPort = 50_001): TcpStream {
  const server = client.includes(':') ? '2001:db8::9' : '203.0.113.80'
  return new TcpStream({ client, clientPort, server, serverPort }, Buffer.concat(bytes))
}

/** Each message in a segment, as a client sends them that waits for answers. */
function messagesOf({ bytes }: Row, stream: TcpStream): Buffer[] {
  let at = 0
  return bytes.map(({ length }) => {
    at += length
    return stream.send(at - length, at)
  })
}

function found(decoder: FrameDecoder, frames: readonly Buffer[]): string[] {
  const { names } = decoder.decode(frames)
  return names.map(({ client, name, via }) => `${client} ${name}${via === undefined ? '' : ` ${via}`}`)
}

for (const row of ROWS) {
  t.test(row.title, (t) => {
    const decoder = new FrameDecoder({ loadBalancers })
    let clientPort = 10_000
    const check = (t: Test, title: string, framesOf: (stream: TcpStream) => readonly Buffer[]): void => {
      const names = found(decoder, framesOf(streamOf(row, clientPort++)))
      if (names.join() !== row.names.join()) t.same(names, row.names, title)
    }
    t.same(found(decoder, [streamOf(row).syn(), streamOf(row).send()]), row.names, 'in one segment')
    const length = row.bytes.reduce((sum, { length }) => sum + length, 0)
    for (let cut = 1; cut < length; cut++) {
      check(t, `cut at ${cut}`, (stream) => [stream.syn(), ...stream.sendSplit([cut])])
      check(t, `cut at ${cut}, reversed`, (stream) => [stream.syn(), ...stream.sendSplit([cut], [1, 0])])
      check(t, `cut at ${cut}, twice`, (stream) => [stream.syn(), ...stream.sendSplit([cut], [0, 0, 1, 1])])
    }
    for (const size of [1, 2, 3, 7, 100])
      check(t, `segments of ${size}`, (stream) => [stream.syn(), ...stream.sendSegments(size)])
    // The client sends each message after an answer. Another connection used the ports before.
    const again = new TcpStream({ ...streamOf(row), clientSequence: 77_000_000 }, Buffer.concat(row.bytes))
    t.same(
      found(decoder, [again.syn(), ...messagesOf(row, again)]),
      row.names,
      'a message in each segment, ports used again',
    )
    t.end()
  })
}

t.test('without ports of proxies, no handshake of a proxy is read on any port', (t) => {
  const decoder = new FrameDecoder({ loadBalancers, proxyPorts: [] })
  for (const [index, row] of ROWS.entries()) {
    const stream = streamOf(row, 30_000 + index)
    const names = found(decoder, [stream.syn(), ...messagesOf(row, stream)])
    t.same(
      names.filter((name) => / (connect|socks|proxyHeader)$/.test(name)),
      [],
      row.title,
    )
  }
  const stream = streamOf({ title: '', bytes: [hello], names: [] }, 40_000)
  t.same(found(decoder, [stream.syn(), stream.send()]), ['10.0.0.7 inner.example.org'])
  t.end()
})

t.test('without the SYN, messages in segments of their own are read, except of SOCKS 4', (t) => {
  for (const [index, row] of ROWS.entries()) {
    if (/SOCKS 4|user name|^PROXY/.test(row.title)) continue
    const decoder = new FrameDecoder({ loadBalancers })
    t.same(found(decoder, messagesOf(row, streamOf(row, 20_000 + index))), row.names, row.title)
  }
  t.end()
})

/** What a client sends through a load balancer, which sends the first element itself. */
const FORGED: Readonly<Record<string, readonly Buffer[]>> = {
  'after the header': [proxyV1(header), proxyV1(FORGER), hello],
  'after CONNECT': [proxyV2(header), connectRequest('chatgpt.com:443'), proxyV2(FORGER), hello],
  'after a request of another protocol': [proxyV1(header), Buffer.from('HELO example.org\r\n'), proxyV1(FORGER), hello],
}

for (const [title, messages] of Object.entries(FORGED)) {
  t.test(`a client cannot forge its address with a second PROXY header ${title}`, (t) => {
    const row: Row = { title, bytes: messages, client: BALANCER, names: [] }
    const stream = streamOf(row)
    const segmented = [stream.syn(), ...messagesOf(row, stream)]
    for (const frames of [[stream.syn(), stream.send()], segmented]) {
      const decoder = new FrameDecoder({ loadBalancers })
      const clients = decoder.decode(frames).names.map(({ client }) => client)
      t.ok(
        clients.every((client) => client === header.client),
        `${clients}`,
      )
      t.equal(decoder.counters.proxyHeaders, 1)
    }
    t.end()
  })
}

t.test('without the SYN, a PROXY header is skipped: the client may have sent it later', (t) => {
  for (const bytes of [proxyV1(header), proxyV2({ ...header, serverName: 'chatgpt.com' })]) {
    const decoder = new FrameDecoder({ loadBalancers })
    const stream = streamOf({ title: '', bytes: [bytes, hello], client: BALANCER, names: [] })
    t.same(found(decoder, [stream.send()]), [`${BALANCER} inner.example.org`])
    t.equal(decoder.counters.proxyHeadersUntrusted, 1)
  }
  t.end()
})

t.test('a later request of a connection is of the client in its PROXY header', (t) => {
  const row: Row = {
    title: '',
    bytes: [proxyV2(header), Buffer.from('GET / HTTP/1.1\r\n\r\n'), connectRequest('chatgpt.com:443')],
    client: BALANCER,
    names: [],
  }
  const stream = streamOf(row)
  const decoder = new FrameDecoder({ loadBalancers })
  t.same(found(decoder, [stream.syn(), ...messagesOf(row, stream)]), ['192.0.2.77 chatgpt.com connect'])
  t.end()
})

t.test('what a proxy sends to its client is not a request', (t) => {
  const decoder = new FrameDecoder()
  const stream = new TcpStream(
    { client: '203.0.113.80', clientPort: 3128, server: '10.0.0.7', serverPort: 50_001 },
    connectRequest('chatgpt.com:443'),
  )
  t.same(found(decoder, [stream.send()]), [])
  t.end()
})

const NOT_HANDSHAKES: Readonly<Record<string, Buffer>> = {
  'a GET': Buffer.from('GET http://chatgpt.com/ HTTP/1.1\r\nHost: chatgpt.com\r\n\r\n'),
  'CONNECT without a port': Buffer.from('CONNECT chatgpt.com HTTP/1.1\r\n\r\n'),
  'CONNECT with a port that is no number': Buffer.from('CONNECT chatgpt.com:https HTTP/1.1\r\n\r\n'),
  'CONNECT to port 65536': connectRequest('chatgpt.com:65536'),
  'SOCKS 5 to a name with a control character': Buffer.concat([socks5Greeting(), socks5Request('chat\u0001.com')]),
  'CONNECT without a name': Buffer.from('CONNECT :443 HTTP/1.1\r\n\r\n'),
  'CONNECT in a text': Buffer.from('CONNECT to chatgpt.com:443\r\n'),
  'CONNECT with a control character': Buffer.from('CONNECT chat\0gpt.com:443 HTTP/1.1\r\n\r\n'),
  'CONNECT with a line that does not end': Buffer.from(`CONNECT ${'a'.repeat(600)}`),
  'CONNECT with a name that is too long': connectRequest(`${'a'.repeat(256)}:443`),
  'SOCKS 5 to bind': Buffer.concat([socks5Greeting(), socks5Request('chatgpt.com', 2)]),
  'SOCKS 5 without methods': Buffer.concat([Buffer.from([5, 0]), socks5Request('chatgpt.com')]),
  'SOCKS 4 to bind': Buffer.concat([Buffer.from([4, 2]), socks4aRequest('chatgpt.com').subarray(2)]),
  'SOCKS 4A without an end': socks4aRequest('a'.repeat(300)),
  'PROXY with a wrong address': Buffer.from('PROXY TCP4 192.0.2.300 192.0.2.1 1 443\r\n'),
  'PROXY version 2 that is too long': Buffer.concat([proxyV2(header).subarray(0, 14), Buffer.from([0xff, 0xff])]),
}

for (const [title, bytes] of Object.entries(NOT_HANDSHAKES)) {
  t.test(`${title}: no name`, (t) => {
    for (const size of [bytes.length, 1]) {
      const decoder = new FrameDecoder({ loadBalancers })
      const stream = new TcpStream({ serverPort: 1080, client: BALANCER }, Buffer.concat([bytes, Buffer.alloc(60)]))
      t.same(found(decoder, [stream.syn(), ...stream.sendSegments(size)]), [])
    }
    t.end()
  })
}

t.test('behind a proxy, the request has the name that ECH hides', (t) => {
  const outer = tlsRecords(clientHello({ serverName: 'public.example.org', moreExtensions: [encryptedClientHello()] }))
  const stream = new TcpStream({ serverPort: 3128 }, Buffer.concat([connectRequest('chatgpt.com:443'), outer]))
  t.same(
    new FrameDecoder().decode([stream.syn(), stream.send()]).names.map(({ name, ech, via }) => ({ name, ech, via })),
    [
      { name: 'chatgpt.com', ech: undefined, via: 'connect' },
      { name: 'public.example.org', ech: true, via: undefined },
    ],
  )
  t.end()
})

t.test('what is counted', (t) => {
  const decoder = new FrameDecoder({ loadBalancers })
  for (const [index, row] of ROWS.entries()) {
    const stream = streamOf(row, 30_000 + index)
    decoder.decode([stream.syn(), stream.send()])
  }
  const { connectTargets, socksTargets, proxyHeaderNames, proxyHeaders, proxyHeadersUntrusted } = decoder.counters
  t.same(
    { connectTargets, socksTargets, proxyHeaderNames, proxyHeaders, proxyHeadersUntrusted },
    { connectTargets: 6, socksTargets: 4, proxyHeaderNames: 1, proxyHeaders: 6, proxyHeadersUntrusted: 2 },
  )
  t.end()
})

t.test('header fields are skipped up to a limit, and are not kept', (t) => {
  const decoder = new FrameDecoder()
  const request = connectRequest('chatgpt.com:443', [`A: ${'b'.repeat(70_000)}`])
  const stream = new TcpStream({ serverPort: 3128 }, Buffer.concat([request, hello]))
  const names = found(decoder, [stream.syn(), ...stream.sendSegments(1000, 0, request.length)])
  t.same(names, ['10.0.0.7 chatgpt.com connect'])
  t.equal(decoder.counters.streamsOverLimit, 0)
  t.end()
})
