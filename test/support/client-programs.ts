import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ClientNetwork, type Host, SERVER, serveDante, serveSquid } from './client-network.ts'
import { nginxTemporaryFolders } from './nginx.ts'
import { REPOSITORY } from './programs.ts'

/**
 * curl, openssl, Node, Python, Go and ngtcp2 request 40 names of AI platforms, directly, through
 * proxies and through a load balancer, while tcpdump writes traffic.pcap. Usage: `unshare --net
 * --mount --pid --fork --kill-child node client-programs.js FOLDER`. Prints what the clients
 * requested as one line of JSON.
 */

export interface ProgramRow {
  readonly client: string
  readonly by: string
  /** `method name via` of the expected rows, in any order. */
  readonly rows: readonly string[]
}

export interface ProgramTraffic {
  readonly loadBalancer: string
  readonly clients: readonly ProgramRow[]
  readonly absent: readonly string[]
}

const Port = { tinyproxy: 8888, tinyproxyLogin: 8118, squid: 3128, dante: 1080, proxied: 8443, balanced: 443 } as const
const CURL = [
  '-sS',
  '--fail',
  '--fail-early',
  '--max-time',
  '20',
  '-o',
  '/dev/null',
  '--http1.1',
  '--noproxy',
  'none.example',
]
/** The status of curl after a proxy's refusal. */
const CURL_REFUSED = 97
const [folder = ''] = process.argv.slice(2)
const clients: ProgramRow[] = []
const absent: string[] = []
const network = await ClientNetwork.create(folder)
const { names } = network
await network.serveWeb()
await serveProxies()
const balancer = network.host('balancer')
await serveBalancer(balancer)
const stopCapture = await network.capture(join(folder, 'traffic.pcap'))

await directly()
await throughProxies()
await throughBalancer()
await stopCapture()
const traffic: ProgramTraffic = { loadBalancer: balancer.address, clients, absent }
process.stdout.write(`${JSON.stringify(traffic)}\n`, () => process.exit())

type Run = (host: Host) => Promise<void>

/** Runs a client, and expects the DNS questions of its host and these rows of each name. */
async function request(by: string, runs: Run, method: string, vias: readonly string[] = ['']): Promise<void> {
  const host = network.host(`c${clients.length}`)
  await runs(host)
  const rows = names.flatMap((name) => vias.map((via) => `${method} ${name} ${via}`.trim()))
  clients.push({
    by,
    client: host.address,
    rows: [...network.questionsOf(host.address).map((name) => `dns ${name}`), ...rows].sort(),
  })
}

async function directly(): Promise<void> {
  await request('curl', curl(), 'tls')
  await request('curl, TLS 1.2', curl('--tls-max', '1.2'), 'tls')
  await request('curl, plain HTTP', curlTo('http'), 'tls', ['http'])
  await request('Node', node(), 'tls')
  await request('Python', python(), 'tls')
  await request('Go', go(), 'tls')
  await request('openssl', openssl(), 'tls')
  if (existsSync('/usr/bin/gtlsclient')) await request('ngtcp2', ngtcp2(), 'quic')
  else absent.push('ngtcp2-client')
}

async function throughProxies(): Promise<void> {
  const tinyproxy = `http://${SERVER}:${Port.tinyproxy}`
  const login = `http://jdoe:secret@${SERVER}:${Port.tinyproxyLogin}`
  const squid = `http://${SERVER}:${Port.squid}`
  const dante = `${SERVER}:${Port.dante}`
  await request('curl, tinyproxy', curl('--proxy', tinyproxy), 'tls', ['connect'])
  await request('curl, tinyproxy with a password', curl('--proxy', login), 'tls', ['connect'])
  // The answer 407 closes the connection, and curl repeats the request on another.
  await request('curl, after 407', curl('--proxy', login, '--proxy-anyauth'), 'tls', ['connect', 'connect'])
  await request('curl, squid', curl('--proxy', squid), 'tls', ['connect'])
  await request('curl, plain HTTP over squid', curlTo('http', '--proxy', squid), 'tls', ['http'])
  await request('curl, SOCKS 5', curl('--proxy', `socks5h://${dante}`), 'tls', ['socks'])
  await request('curl, SOCKS 5 to an address', curl('--proxy', `socks5://${dante}`), 'tls')
  // Dante takes the address 0.0.0.1 of SOCKS 4A as such and refuses. The name was asked anyway.
  const refused: Run = (host) =>
    run(
      host,
      'curl',
      [...CURL, '--no-fail-early', '--proxy', `socks4a://jdoe@${dante}`, ...urls('https')],
      {},
      CURL_REFUSED,
    )
  await request('curl, SOCKS 4A', refused, 'tls', ['socks'])
  await request('Node, squid', node(squid), 'tls', ['connect'])
  await request('Python, tinyproxy', python({ https_proxy: tinyproxy }), 'tls', ['connect'])
  await request('Go, squid', go({ HTTPS_PROXY: squid }), 'tls', ['connect'])
  await request('Go, SOCKS 5', go({ HTTPS_PROXY: `socks5://${dante}` }), 'tls', ['socks'])
}

/** The load balancer's connection to the server has the same name, and the client of its header. */
async function throughBalancer(): Promise<void> {
  const to = (port: number) => names.flatMap((name) => ['--resolve', `${name}:${port}:${balancer.address}`])
  const urlsTo = (port: number) => names.map((name) => `https://${name}:${port}/`)
  const through = (port: number): Run => {
    return (host) => run(host, 'curl', [...CURL, '--cacert', network.caFile, ...to(port), ...urlsTo(port)])
  }
  await request('curl, HAProxy', through(Port.balanced), 'tls', ['', ''])
  await request('curl, HAProxy with a server name', through(Port.balanced + 1), 'tls', ['', 'proxyHeader'])
}

function curl(...options: string[]): Run {
  return curlTo('https', ...options)
}

/** curl writes only the first body to the file; the others go to its output, which is ignored. */
function curlTo(scheme: string, ...options: string[]): Run {
  return (host) => run(host, 'curl', [...CURL, '--cacert', network.caFile, ...options, ...urls(scheme)])
}

function urls(scheme: string): string[] {
  return names.map((name) => `${scheme}://${name}/`)
}

function node(proxy = ''): Run {
  const undici = join(REPOSITORY, 'node_modules/undici/index.js')
  const script = `
    const { fetch, ProxyAgent, Agent } = require(${JSON.stringify(undici)})
    const proxy = ${JSON.stringify(proxy)}
    const get = async (name) => {
      const dispatcher = proxy === '' ? new Agent() : new ProxyAgent(proxy)
      await (await fetch('https://' + name + '/', { dispatcher })).text()
      await dispatcher.close()
    }
    Promise.all(${JSON.stringify(names)}.map(get)).catch((error) => { console.error(error); process.exit(1) })`
  return (host) => run(host, process.execPath, ['-e', script], { NODE_EXTRA_CA_CERTS: network.caFile })
}

function python(environment: NodeJS.ProcessEnv = {}): Run {
  const script = `
import ssl, urllib.request
context = ssl.create_default_context(cafile=${JSON.stringify(network.caFile)})
for name in ${JSON.stringify(names)}:
    urllib.request.urlopen('https://' + name + '/', context=context, timeout=20).read()`
  return (host) => run(host, 'python3', ['-c', script], environment)
}

/** promtool uses net/http of Go. It fails, because the answer is not of Prometheus. */
function go(environment: NodeJS.ProcessEnv = {}): Run {
  const promtool = join(REPOSITORY, 'node_modules/.cache/prometheus/usr/bin/promtool')
  const env = { ...environment, SSL_CERT_FILE: network.caFile }
  return async (host) => {
    for (const name of names) await run(host, promtool, ['query', 'instant', `https://${name}`, 'up'], env, 1)
  }
}

function openssl(): Run {
  return async (host) => {
    for (const name of names)
      await run(host, 'openssl', [
        's_client',
        '-connect',
        `${name}:443`,
        '-servername',
        name,
        '-CAfile',
        network.caFile,
      ])
  }
}

function ngtcp2(): Run {
  return async (host) => {
    for (const name of names)
      await run(host, 'gtlsclient', ['-q', '--exit-on-all-streams-close', name, '443', `https://${name}/`])
  }
}

async function serveProxies(): Promise<void> {
  const file = (name: string, lines: readonly string[]): string => {
    const path = join(folder, name)
    writeFileSync(path, `${lines.join('\n')}\n`)
    return path
  }
  const tinyproxy = async (port: number, more: readonly string[]) => {
    const config = [`Port ${port}`, `Listen ${SERVER}`, 'Allow 10.9.0.0/24', 'MaxClients 100', ...more]
    await network.serve('clients/usr/bin/tinyproxy', ['-d', '-c', file(`tinyproxy-${port}.conf`, config)], port)
  }
  await tinyproxy(Port.tinyproxy, [])
  await tinyproxy(Port.tinyproxyLogin, ['BasicAuth jdoe secret'])
  await serveSquid(network, Port.squid)
  await serveDante(network, Port.dante)
}

/** HAProxy, which passes TLS on or ends it, and nginx, which reads PROXY headers. */
async function serveBalancer(host: Host): Promise<void> {
  const pem = join(folder, 'server-and-key.pem')
  writeFileSync(pem, readFileSync(network.certificate, 'utf8') + readFileSync(network.key, 'utf8'))
  const server = `server web ${SERVER}:${Port.proxied} send-proxy-v2`
  const haproxy = [
    ...['defaults', 'mode tcp', 'timeout connect 5s', 'timeout client 20s'],
    ...['timeout server 20s', 'listen passed', `bind ${host.address}:${Port.balanced}`, server],
    ...['listen ended', 'mode http', 'http-reuse never', `bind ${host.address}:${Port.balanced + 1} ssl crt ${pem}`],
    `${server} ssl verify none sni ssl_fc_sni proxy-v2-options authority`,
  ]
  writeFileSync(join(folder, 'haproxy.cfg'), `${haproxy.join('\n')}\n`)
  const nginx = [
    ...[
      'daemon off;',
      `pid ${folder}/nginx.pid;`,
      'error_log stderr;',
      'user root;',
      'events {}',
      'http {',
      'access_log off;',
    ],
    nginxTemporaryFolders(folder),
    ...['server {', `listen ${SERVER}:${Port.proxied} ssl proxy_protocol;`, `ssl_certificate ${network.certificate};`],
    ...[`ssl_certificate_key ${network.key};`, 'location / { return 200 ok; }', '}', '}'],
  ]
  writeFileSync(join(folder, 'nginx.conf'), `${nginx.join('\n')}\n`)
  await network.serve('nginx/usr/sbin/nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], Port.proxied)
  await network.serve('haproxy/usr/sbin/haproxy', ['-f', join(folder, 'haproxy.cfg')], Port.balanced, host)
}

/** @throws Error if the client ends with another status. */
async function run(
  host: Host,
  program: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  expected = 0,
): Promise<void> {
  const [command, parameters] = host.command(program, ...args)
  const env = { PATH: process.env['PATH'], HOME: folder, ...environment }
  const child = spawn(command, parameters, { stdio: ['ignore', 'ignore', 'pipe'], env, timeout: 60_000 })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const [status] = await once(child, 'close')
  if (status !== expected) throw new Error(`${program} ${args.slice(-1).join()}: ${status} ${said}`)
}
