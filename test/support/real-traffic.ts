import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { decode, encode, streamEncode, TRUNCATED_RESPONSE } from 'dns-packet'
import { quicRetry } from './packets-quic.ts'

/**
 * Generates traffic with third-party programs in separate namespaces while tcpdump writes
 * traffic.pcap. Usage: `unshare --net --mount --pid --fork --kill-child node real-traffic.js FOLDER
 * KEY CERTIFICATE`. Its servers end with the process. Prints what the clients requested as one line
 * of JSON.
 */

/** The names that one client's traffic must contain. */
export interface Requested {
  readonly by: string
  readonly method: 'dns' | 'tls' | 'quic'
  readonly names: readonly string[]
}

export interface RealTraffic {
  readonly requested: readonly Requested[]
  /** Client programs that are not installed. */
  readonly absent: readonly string[]
}

const [folder = '', keyFile = '', certificateFile = ''] = process.argv.slice(2)
const Port = { dns: 53, tls: 443, proxy: 3128, postgresql: 5432, retry: 4432, tlsP384: 4434 } as const
/** Nothing listens on this port. */
const SILENT_PORT = 4431
const LOOPBACK = '127.0.0.1'
/** Names that clients look up. */
const HOSTS = [
  'tls-1-2',
  'tls-1-3',
  'ipv6',
  'retry-request',
  'starttls',
  'curl',
  'curl-proxy',
  'silent',
  'retry',
  'draft',
]
const nameOf = (label: string) => `${label}.real.example`

const requested: Requested[] = []
const absent: string[] = []

isolate()
const stopCapture = await capture()
await serveTls()
await serveDns()
await serve(Port.postgresql, startTls)
await serve(Port.proxy, proxy)
await askDns()
await connectTlsClients()
await connectQuicClients()
await stopCapture()
const traffic: RealTraffic = { requested, absent }
process.stdout.write(`${JSON.stringify(traffic)}\n`, () => process.exit())

/**
 * Adds host names that only this process sees. Limits segments to the size that a network has;
 * loopback would pass whole writes on.
 */
function isolate(): void {
  execFileSync('ip', ['link', 'set', 'lo', 'mtu', '1500', 'up', 'gso_max_segs', '1'])
  writeFileSync(join(folder, 'hosts'), HOSTS.map((label) => `${LOOPBACK} ${nameOf(label)}\n`).join(''))
  execFileSync('mount', ['--bind', join(folder, 'hosts'), '/etc/hosts'])
}

/**
 * Starts tcpdump. The returned function stops tcpdump when everything is written, and throws if the
 * kernel dropped a packet.
 */
async function capture(): Promise<() => Promise<void>> {
  // Each slot of the ring has space for a whole snaplen. With tcpdump's default, eight packets fill
  // the ring.
  const ring = ['-s', '2000', '-B', '16384', '--immediate-mode', '-U']
  const child = spawn('tcpdump', ['-i', 'lo', ...ring, '-Z', 'root', '-w', join(folder, 'traffic.pcap')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  while (!said.includes('listening on')) await once(child.stderr, 'data')
  return async () => {
    // Gives tcpdump time to write the last packets.
    await sleep(300)
    child.kill('SIGINT')
    await once(child, 'close')
    if (!said.includes('\n0 packets dropped by kernel')) throw new Error(`tcpdump: ${said}`)
  }
}

/**
 * openssl's servers. The last one supports a single group, so TLS 1.3 clients must send a second
 * ClientHello (RFC 8446 §4.1.4).
 */
async function serveTls(): Promise<void> {
  const server = async (address: string, port: number, options: readonly string[] = []) => {
    const identity = ['-key', keyFile, '-cert', certificateFile, '-www', '-quiet']
    const parameters = ['s_server', '-accept', `${address}:${port}`, ...identity, ...options]
    spawn('openssl', parameters, { stdio: 'ignore' })
    await listening(address, port)
  }
  await server(LOOPBACK, Port.tls)
  await server('[::1]', Port.tls)
  await server(LOOPBACK, Port.tlsP384, ['-groups', 'P-384'])
}

async function listening(address: string, port: number): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const { stdout } = spawnSync('ss', ['-Hltn', `sport = :${port}`], { encoding: 'utf8' })
    if (stdout.includes(`${address}:${port}`)) return
    await sleep(20)
  }
  throw new Error(`nobody listens on ${address}:${port}`)
}

async function serve(port: number, answer: (socket: Socket) => void): Promise<void> {
  const server = createServer(answer).listen(port, LOOPBACK)
  await once(server, 'listening')
}

/** The answer to PostgreSQL's SSLRequest is S; then TLS follows. */
function startTls(socket: Socket): void {
  socket.once('data', () => {
    socket.write('S')
    relay(socket, connect(Port.tls, LOOPBACK))
  })
}

/** RFC 9110 §9.3.6. */
function proxy(socket: Socket): void {
  socket.once('data', () => {
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
    relay(socket, connect(Port.tls, LOOPBACK))
  })
}

function relay(one: Socket, other: Socket): void {
  one.pipe(other).pipe(one)
  for (const socket of [one, other]) socket.on('error', () => {})
}

/**
 * Answers without records. For a name that begins with "long", the UDP answer has TC set, so that
 * the client repeats the query over TCP.
 */
async function serveDns(): Promise<void> {
  const answerTo = (message: Buffer) => {
    const { id, questions } = decode(message)
    return { id: id ?? 0, type: 'response', questions: questions ?? [] } as const
  }
  const datagrams = createSocket('udp4', (message, { port, address }) => {
    const answer = answerTo(message)
    const flags = answer.questions[0]?.name.startsWith('long') === true ? TRUNCATED_RESPONSE : 0
    datagrams.send(encode({ ...answer, flags }), port, address)
  })
  datagrams.bind(Port.dns, LOOPBACK)
  await once(datagrams, 'listening')
  await serve(Port.dns, (socket) => {
    let waiting = Buffer.alloc(0)
    socket.on('data', (bytes) => {
      waiting = Buffer.concat([waiting, bytes])
      for (let end = 2; waiting.length >= 2 && waiting.length >= end; ) {
        end = 2 + waiting.readUInt16BE()
        if (waiting.length < end) return
        socket.write(streamEncode(answerTo(waiting.subarray(2, end))))
        waiting = waiting.subarray(end)
      }
    })
    socket.on('error', () => {})
  })
}

async function askDns(): Promise<void> {
  const resolver = new Resolver({ timeout: 1000, tries: 1 })
  resolver.setServers([LOOPBACK])
  const ask = async (by: string, question: () => Promise<unknown>, names: readonly string[]) => {
    await question().catch((error) => {
      // The answers are empty; only the questions matter.
      if (error.code !== 'ENODATA') throw error
    })
    requested.push({ by, method: 'dns', names })
  }
  for (const type of ['A', 'AAAA', 'TXT', 'SRV', 'PTR'] as const) {
    const name = nameOf(`c-ares-${type.toLowerCase()}`)
    await ask(`c-ares, ${type}`, () => resolver.resolve(name, type), [name])
  }
  const long = nameOf('long-answer')
  await ask('c-ares, over UDP and again over TCP', () => resolver.resolve4(long), [long, long])
  const mixed = nameOf('Mixed-CASE')
  await ask('c-ares, upper case', () => resolver.resolve4(mixed), [mixed.toLowerCase()])

  const names = ['one', 'two', 'three'].map((label) => nameOf(`pipelined-${label}`))
  const messages = Buffer.concat(names.map((name) => query(name)))
  await ask('pipelined in one write', () => overTcp([messages]), names)
  const slow = nameOf('byte-by-byte')
  await ask('one byte a segment', () => overTcp([...query(slow)].map((byte) => Buffer.from([byte]))), [slow])
}

function query(name: string): Buffer {
  return streamEncode({ type: 'query', id: 7, questions: [{ type: 'A', name }] })
}

async function overTcp(writes: readonly Buffer[]): Promise<void> {
  const socket = connect(Port.dns, LOOPBACK).setNoDelay(true)
  await once(socket, 'connect')
  for (const bytes of writes) await new Promise((resolve) => socket.write(bytes, resolve))
  await once(socket, 'data')
  socket.destroy()
}

async function connectTlsClients(): Promise<void> {
  const openssl = async (by: string, label: string, parameters: readonly string[], times = 1) => {
    const name = nameOf(label)
    await run('openssl', ['s_client', '-servername', name, ...parameters])
    requested.push({ by: `openssl, ${by}`, method: 'tls', names: new Array(times).fill(name) })
  }
  const to = (port: number, address = LOOPBACK) => ['-connect', `${address}:${port}`]
  await openssl('TLS 1.2', 'tls-1-2', ['-tls1_2', ...to(Port.tls)])
  await openssl('TLS 1.3', 'tls-1-3', ['-tls1_3', ...to(Port.tls)])
  await openssl('over IPv6', 'ipv6', to(Port.tls, '[::1]'))
  // ChangeCipherSpec precedes the second hello in the same segment (RFC 8446 §D.4).
  const retried = nameOf('retry-request')
  await run('openssl', ['s_client', '-servername', retried, '-groups', 'X25519:P-384', ...to(Port.tlsP384)])
  requested.push({ by: 'openssl, HelloRetryRequest', method: 'tls', names: [retried, retried] })
  // The relay sends the same hello to the server, so it is captured twice.
  await openssl('STARTTLS', 'starttls', ['-starttls', 'postgres', ...to(Port.postgresql)], 2)
  await run('openssl', ['s_client', '-noservername', ...to(Port.tls)])
  requested.push({ by: 'openssl, without a name', method: 'tls', names: [] })

  for (const protocols of [2, 60, 140]) {
    const name = nameOf(`node-${protocols}-protocols`)
    await nodeTls(name, protocols)
    requested.push({ by: `node:tls, ${protocols} protocols`, method: 'tls', names: [name] })
  }

  const curl = async (by: string, label: string, parameters: readonly string[], times = 1) => {
    const name = nameOf(label)
    await run('curl', ['-sk', '--max-time', '5', ...parameters, `https://${name}/`])
    requested.push({ by: `curl, ${by}`, method: 'tls', names: new Array(times).fill(name) })
  }
  await curl('directly', 'curl', [])
  await curl('through a proxy', 'curl-proxy', ['--proxy', `http://${LOOPBACK}:${Port.proxy}`], 2)
}

/** With many protocols, the hello takes several segments. */
async function nodeTls(servername: string, protocols: number): Promise<void> {
  const ALPNProtocols = Array.from({ length: protocols }, (_, index) => `protocol-${index}-of-no-meaning`)
  const socket = connectTls({ host: LOOPBACK, port: Port.tls, servername, rejectUnauthorized: false, ALPNProtocols })
  await once(socket, 'secureConnect')
  socket.destroy()
}

/**
 * Runs ngtcp2's client against a closed port and against a server that answers with a Retry, after
 * which the client sends another hello.
 */
async function connectQuicClients(): Promise<void> {
  const client = 'gtlsclient'
  if (!(process.env['PATH'] ?? '').split(':').some((directory) => existsSync(join(directory, client)))) {
    absent.push(client)
    return
  }
  const connectQuic = async (by: string, label: string, port: number, options: readonly string[] = []) => {
    const name = nameOf(label)
    await run(client, ['-q', '--handshake-timeout=400ms', ...options, name, `${port}`, `https://${name}/`])
    requested.push({ by: `ngtcp2, ${by}`, method: 'quic', names: [name] })
  }
  await connectQuic('version 1', 'silent', SILENT_PORT)
  await connectQuic('draft 29', 'draft', SILENT_PORT, ['-v', '0xff00001d'])
  const retried = await answerWithRetry()
  await connectQuic('behind a Retry', 'retry', Port.retry)
  if (!retried()) throw new Error('the client did not follow the Retry')
}

/**
 * Answers the first Initial with a Retry (RFC 9000 §17.2.5) and ignores the second. The returned
 * function reports whether the second arrived.
 */
async function answerWithRetry(): Promise<() => boolean> {
  const token = Buffer.from('a token of ours')
  const scid = Buffer.from('5e5e5e5e01020304', 'hex')
  let retried = false
  const socket = createSocket('udp4', (datagram, { port, address }) => {
    // RFC 9000 §17.2: flags, version, then both connection IDs, each after its length.
    const scidAt = 6 + (datagram[5] ?? 0)
    const answers = datagram.subarray(6, scidAt)
    if (answers.equals(scid)) {
      retried = true
      return
    }
    const dcid = datagram.subarray(scidAt + 1, scidAt + 1 + (datagram[scidAt] ?? 0))
    socket.send(quicRetry({ dcid, scid, token, answers }), port, address)
  })
  socket.bind(Port.retry, LOOPBACK)
  await once(socket, 'listening')
  return () => retried
}

/** Runs a client until it exits. Its exit status does not matter, only what it sent. */
async function run(command: string, parameters: readonly string[]): Promise<void> {
  const child = spawn(command, parameters, { stdio: 'ignore', timeout: 5000 })
  await once(child, 'exit')
}
