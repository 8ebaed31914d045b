import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { decode } from 'dns-packet'
import { loadCatalog } from '../../registry/catalog.ts'
import { dnsAnswer, httpsRecord } from './packets-dns.ts'
import { REPOSITORY } from './programs.ts'

/**
 * A network of real clients, in namespaces: a bridge with the servers, and a namespace with an
 * address for each client. tcpdump captures the bridge, so what a proxy asks of the servers is not
 * in the capture. For programs that run under `unshare --net --mount --pid`.
 */
export const SERVER = '10.9.0.1'
const SERVER_MAC = '02:00:00:00:00:01'
const CACHE = join(REPOSITORY, 'node_modules/.cache')
const LIBRARIES = 'usr/lib/x86_64-linux-gnu'
const TYPE_A = 1
const TYPE_HTTPS = 65
/** RFC 1035 §4.1.1: a response with recursion, without and with the error NXDOMAIN. */
const FOUND = 0x8180
const NO_SUCH_NAME = 0x8183
const READY_MS = 20_000
const POLL_MS = 20
/** One domain of each of 40 platforms. */
export const PLATFORM_NAMES = 40

export interface AccessLogEntry {
  readonly remote_ip: string
  readonly proto: string
  readonly host: string
}

export class ClientNetwork {
  readonly folder: string
  readonly names: readonly string[]
  /** The CA that all clients trust, and the server's certificate with all names. */
  readonly caFile: string
  readonly certificate: string
  readonly key: string
  readonly #questions = new Map<string, string[]>()
  #addresses = 1

  private constructor(folder: string, names: readonly string[]) {
    this.folder = folder
    this.names = names
    this.caFile = join(folder, 'ca.pem')
    this.certificate = join(folder, 'server.pem')
    this.key = join(folder, 'server.key')
  }

  /** `https`: the parameters of HTTPS records (RFC 9460), none for names without such a record. */
  static async create(
    folder: string,
    https: (name: string) => Parameters<typeof httpsRecord>[0] | undefined = () => undefined,
  ): Promise<ClientNetwork> {
    const network = new ClientNetwork(folder, platformNames())
    for (const path of ['/run/netns', '/dev/shm']) {
      mkdirSync(path, { recursive: true })
      execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', path])
    }
    writeFileSync(join(folder, 'resolv.conf'), `nameserver ${SERVER}\n`)
    execFileSync('mount', ['--bind', join(folder, 'resolv.conf'), '/etc/resolv.conf'])
    ip('link', 'set', 'lo', 'up')
    // Without an address of its own, the bridge takes that of a port, also of a client that comes
    // later. The others then send to the address before, and nothing answers them.
    ip('link', 'add', 'br0', 'address', SERVER_MAC, 'type', 'bridge')
    ip('address', 'add', `${SERVER}/24`, 'dev', 'br0')
    ip('link', 'set', 'br0', 'up')
    network.#certify()
    await network.#serveDns(https)
    return network
  }

  /** A namespace with its own address. */
  host(name: string): Host {
    const address = `10.9.0.${++this.#addresses}`
    ip('netns', 'add', name)
    ip('link', 'add', `v-${name}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
    ip('link', 'set', `v-${name}`, 'master', 'br0', 'up')
    const inside = ['-netns', name]
    ip(...inside, 'link', 'set', 'lo', 'up')
    ip(...inside, 'address', 'add', `${address}/24`, 'dev', 'eth0')
    // An IPv6 address that appears later would be a change of the network, which aborts requests.
    ip(...inside, 'link', 'set', 'eth0', 'addrgenmode', 'none')
    // Without segmentation offload, packets have the sizes of a network.
    execFileSync('ip', ['netns', 'exec', name, 'ip', 'link', 'set', 'eth0', 'gso_max_segs', '1', 'up'])
    return new Host(name, address)
  }

  /** What clients asked of the DNS server, by address. */
  questionsOf(address: string): readonly string[] {
    return this.#questions.get(address) ?? []
  }

  /**
   * Captures the bridge. The returned function ends the capture, and throws if the kernel dropped a
   * packet.
   */
  async capture(path: string): Promise<() => Promise<void>> {
    const ring = ['-s', '2000', '-B', '32768', '--immediate-mode', '-U']
    const child = spawn('tcpdump', ['-i', 'br0', ...ring, '-Z', 'root', '-w', path], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    while (!said.includes('listening on')) await once(child.stderr, 'data')
    return async () => {
      await sleep(300)
      child.kill('SIGINT')
      await once(child, 'close')
      if (!said.includes('\n0 packets dropped by kernel')) throw new Error(`tcpdump: ${said}`)
    }
  }

  /** Caddy: all names over HTTP/1.1, HTTP/2 and HTTP/3, and plain HTTP. Returns its access log. */
  async serveWeb(): Promise<() => AccessLogEntry[]> {
    const file = join(this.folder, 'access.json')
    const log = `log {\noutput file ${file}\nformat json\n}`
    const site = (address: string, tls: string) =>
      `${address} {\nbind ${SERVER}\n${tls}\n${log}\nheader Connection close\nrespond "<title>ok</title>"\n}`
    const text = [
      '{\nadmin off\nauto_https off\n}',
      site(':80', ''),
      site('https://:443', `tls ${this.certificate} ${this.key}`),
    ]
    writeFileSync(join(this.folder, 'Caddyfile'), `${text.join('\n')}\n`)
    await this.serve('clients/usr/bin/caddy', ['run', '--config', join(this.folder, 'Caddyfile')], 443)
    return () =>
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => (JSON.parse(line) as { request: AccessLogEntry }).request)
  }

  /** Starts a program of the set-up and waits until it listens on the server's address. */
  async serve(program: string, args: readonly string[], port: number, host?: Host): Promise<ChildProcess> {
    return serveOn(this, program, args, port, host)
  }

  #certify(): void {
    const openssl = (...args: string[]): void =>
      void execFileSync('openssl', args, { cwd: this.folder, stdio: ['ignore', 'ignore', 'pipe'] })
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc']
    openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=Test CA', '-days', '30')
    const names = [...this.names, 'public.example'].map((name) => `DNS:${name}`).join()
    writeFileSync(join(this.folder, 'ext'), `subjectAltName=${names}\nbasicConstraints=CA:FALSE\n`)
    openssl('req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=server')
    const sign = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'ext', '-days', '30']
    openssl('x509', '-req', '-in', 'server.csr', '-out', 'server.pem', ...sign)
  }

  /** Answers with the server's address for the names, and for others that they do not exist. */
  async #serveDns(https: (name: string) => Parameters<typeof httpsRecord>[0] | undefined): Promise<void> {
    const socket = createSocket('udp4', (message, { address, port }) => {
      const asked = decode(message).questions?.[0]?.name ?? ''
      const name = asked.toLowerCase()
      this.#questions.set(address, [...this.questionsOf(address), name])
      const type = message.readUInt16BE(12 + asked.length + 2)
      const isKnown = this.names.includes(name)
      const parameters = isKnown && type === TYPE_HTTPS ? https(name) : undefined
      const records = [
        ...(isKnown && type === TYPE_A
          ? [{ type: TYPE_A, ttl: 300, data: Buffer.from(SERVER.split('.').map(Number)) }]
          : []),
        ...(parameters === undefined ? [] : [httpsRecord(parameters)]),
      ]
      const answer = dnsAnswer(asked, records, { type, flags: isKnown ? FOUND : NO_SUCH_NAME })
      message.copy(answer, 0, 0, 2)
      socket.send(answer, port, address)
    })
    socket.bind(53, SERVER)
    await once(socket, 'listening')
  }
}

/** A client or a proxy with an address of its own. */
export class Host {
  readonly name: string
  readonly address: string

  constructor(name: string, address: string) {
    this.name = name
    this.address = address
  }

  /** A command line that runs a program here. */
  command(...args: string[]): [string, string[]] {
    return ['ip', ['netns', 'exec', this.name, ...args]]
  }
}

async function serveOn(
  network: ClientNetwork,
  program: string,
  args: readonly string[],
  port: number,
  host?: Host,
): Promise<ChildProcess> {
  const [folder = ''] = program.split('/')
  const env = {
    PATH: process.env['PATH'],
    LD_LIBRARY_PATH: join(CACHE, folder, LIBRARIES),
    HOME: network.folder,
    XDG_DATA_HOME: network.folder,
  }
  const line = [join(CACHE, program), ...args]
  const [command, parameters] = host === undefined ? [line[0] ?? '', line.slice(1)] : host.command(...line)
  const child = spawn(command, parameters, { env, stdio: ['ignore', 'pipe', 'pipe'], cwd: network.folder })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk) => {
      output = (output + String(chunk)).slice(-4000)
    })
  const deadline = Date.now() + READY_MS
  while (!(await accepts(host?.address ?? SERVER, port))) {
    if (child.exitCode !== null && child.exitCode !== 0) throw new Error(`${program}: ${output}`)
    if (Date.now() > deadline) throw new Error(`${program} does not listen on port ${port}: ${output}`)
    await sleep(POLL_MS)
  }
  return child
}

function accepts(host: string, port: number): Promise<boolean> {
  const socket = connect(port, host)
  return new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  }).finally(() => socket.destroy())
}

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] })
}

/** One domain of each of the first platforms of the registry. */
function platformNames(): string[] {
  const found = new Map<string, string>()
  for (const { domain, platform } of loadCatalog().rules)
    if (!found.has(platform.id) && !domain.includes('*')) found.set(platform.id, domain)
  return [...found.values()].slice(0, PLATFORM_NAMES)
}

/** squid, which resolves names itself. */
export async function serveSquid(network: ClientNetwork, port: number): Promise<void> {
  // squid writes as another user.
  mkdirSync(join(network.folder, 'squid'))
  chmodSync(join(network.folder, 'squid'), 0o777)
  const squid = [
    ...[`http_port ${SERVER}:${port}`, 'http_access allow all', 'cache deny all', 'access_log none'],
    ...[
      `cache_log ${network.folder}/squid/cache.log`,
      `pid_filename ${network.folder}/squid/pid`,
      'pinger_enable off',
      'shutdown_lifetime 0 seconds',
    ],
    ...[`dns_nameservers ${SERVER}`, 'netdb_filename none', `icon_directory ${CACHE}/blockers/usr/share/squid/icons`],
    ...[`mime_table ${CACHE}/blockers/usr/share/squid/mime.conf`, 'hosts_file none', 'unlinkd_program /bin/true'],
    ...[`error_directory ${CACHE}/blockers/usr/share/squid-langpack/templates`, `coredump_dir ${network.folder}/squid`],
  ]
  await network.serve('blockers/usr/sbin/squid', ['-N', '-f', configFile(network, 'squid.conf', squid)], port)
}

/** dante, for SOCKS 4 and 5. */
export async function serveDante(network: ClientNetwork, port: number): Promise<void> {
  const dante = [
    ...[`logoutput: ${network.folder}/dante.log`, `internal: ${SERVER} port = ${port}`, `external: ${SERVER}`],
    ...['clientmethod: none', 'socksmethod: none', 'user.privileged: root', 'user.unprivileged: root'],
    ...['client pass { from: 0/0 to: 0/0 }', 'socks pass { from: 0/0 to: 0/0 }'],
  ]
  await network.serve('clients/usr/sbin/danted', ['-f', configFile(network, 'dante.conf', dante)], port)
}

function configFile({ folder }: ClientNetwork, name: string, lines: readonly string[]): string {
  const path = join(folder, name)
  writeFileSync(path, `${lines.join('\n')}\n`)
  return path
}
