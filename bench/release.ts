import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { Fault } from '../engine/process/error-codes.ts'
import { ethernet, ipv4, udp } from '../test/support/packets.ts'
import { dnsQuery } from '../test/support/packets-dns.ts'
import { framesAt, pcapFile } from '../test/support/packets-pcap.ts'
import { PROGRAMS, REPOSITORY } from '../test/support/programs.ts'
import { median, print } from './compare.ts'
import { sleep } from './live-site.ts'
import { megabytes, memoryBytes } from './machine.ts'

/*
 * The released product: the size of each file; the time from the sensor's start to its first
 * captured packet, compared with tcpdump and tshark; and resident memory on a silent link. The link
 * carries a query per millisecond. The kernel sets the time of the first packet.
 */

const RELEASE = join(REPOSITORY, 'release')
const NETWORK = `spsstart${process.pid}`
const TOKEN = `svc_mt_${'0'.repeat(48)}`
const QUERIES_PER_SECOND = 1000
/** Enough for a first packet even if a busy machine delays the capture thread. */
const CAPTURE_MS = 1000
const IDLE_MS = 8000
const MEMORY_AFTER_MS = 5000

export async function run({ toy }: { toy: boolean }): Promise<void> {
  if (process.getuid?.() !== 0) throw new Fault('USAGE', 'release: needs root, for a network namespace')
  if (!existsSync(RELEASE)) throw new Fault('USAGE', 'release: "npm run release" first')
  sizes()
  const folder = mkdtempSync(join(tmpdir(), 'bench-release-'))
  try {
    ip('netns', 'add', NETWORK)
    for (const which of ['all', 'default']) inside('sysctl', '-qw', `net.ipv6.conf.${which}.disable_ipv6=1`)
    inside('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far')
    for (const link of ['lo', 'near', 'far']) inside('ip', 'link', 'set', link, 'up')
    const contenders = contendersIn(folder)
    await starts(folder, contenders, toy ? 1 : 7)
    for (const [name, command] of contenders) await idle(folder, name, command, toy ? 1000 : MEMORY_AFTER_MS)
  } finally {
    spawnSync('ip', ['netns', 'delete', NETWORK])
    rmSync(folder, { recursive: true, force: true })
  }
}

function sizes(): void {
  for (const name of readdirSync(RELEASE).toSorted()) {
    if (/\.(sha256|json|txt)$/.test(name)) continue
    const file = join(RELEASE, name)
    const bytes = statSync(file).size
    const packed = /\.(gz|deb)$/.test(name) ? bytes : gzipSync(readFileSync(file)).length
    print(`  ${name.padEnd(52)} ${megabytes(bytes)} MB${packed === bytes ? '' : `, ${megabytes(packed)} MB by gzip`}`)
  }
}

type Contender = readonly [name: string, command: readonly string[]]

/** The sensor in each form that runs on this machine. */
function contendersIn(folder: string): Contender[] {
  const machine = process.arch === 'x64' ? 'x86_64' : 'arm64'
  const [executable = ''] = readdirSync(RELEASE).filter((name) => name.endsWith(`-linux-${machine}`))
  execFileSync('tar', ['-xzf', join(RELEASE, `${executable}.tar.gz`), '-C', folder, '--strip-components=1'])
  return [
    ['single executable', [join(RELEASE, executable)]],
    ['unpacked (archive, package, image)', [join(folder, 'bin/posture-collector')]],
    [`from the sources, Node ${process.versions.node}`, [process.execPath, PROGRAMS.collector]],
  ]
}

async function starts(folder: string, contenders: readonly Contender[], rounds: number): Promise<void> {
  const capture = join(folder, 'queries.pcap')
  const addresses = { source: '10.9.0.1', destination: '10.9.0.53' }
  const packet = ipv4(addresses, udp({ sourcePort: 50_000, destinationPort: 53 }, dnsQuery(['chatgpt.com'])))
  writeFileSync(capture, pcapFile(framesAt(0, [ethernet({}, packet)])))
  const player = spawn(
    'ip',
    words('tcpreplay', '-q', '--loop', '0', '--pps', `${QUERIES_PER_SECOND}`, '-i', 'near', capture),
    {
      stdio: 'ignore',
    },
  )
  try {
    const times = new Map<string, number[]>()
    for (let round = 0; round < rounds; round++) {
      // Runs in turn, so that other load of the machine affects all.
      for (const [name, command] of contenders) note(times, name, await ourStart(folder, command))
      note(times, 'tcpdump', await peerStart(['tcpdump', '-i', 'far', '-n', '-tt', '-c', '1', 'udp dst port 53']))
      note(
        times,
        'tshark',
        await peerStart([
          'tshark',
          '-i',
          'far',
          '-n',
          '-c',
          '1',
          '-T',
          'fields',
          '-e',
          'frame.time_epoch',
          '-f',
          'udp dst port 53',
        ]),
      )
    }
    const peer = median(times.get('tshark') ?? [])
    for (const [name, all] of times) {
      print(
        `  start to first packet: ${name.padEnd(36)} ${Math.round(median(all))} ms, ${(median(all) / peer).toFixed(2)}x tshark`,
      )
    }
  } finally {
    player.kill('SIGKILL')
  }
}

/** Milliseconds from the start to the time of the first packet among its events. */
async function ourStart(folder: string, command: readonly string[]): Promise<number> {
  const outbox = mkdtempSync(join(folder, 'outbox-'))
  const started = Date.now()
  const collector = startCollector(folder, command, outbox, ['--aggregate', '0'])
  await waitForOutput(collector, '"msg":"watching"')
  await sleep(CAPTURE_MS)
  collector.kill('SIGTERM')
  await once(collector, 'close')
  const [program = '', ...rest] = command
  const peek = execFileSync(program, [...rest, 'outbox', 'peek', '--count', '1', '--json', '--outbox', outbox], {
    encoding: 'utf8',
    env: environment(folder),
  })
  const { first_seen } = JSON.parse(peek.split('\n', 1)[0] ?? '') as { first_seen: string }
  return Date.parse(first_seen) - started
}

/** The same for a program that prints the time of a packet, in seconds since 1970, and exits. */
async function peerStart(command: readonly string[]): Promise<number> {
  const started = Date.now()
  const peer = spawn('ip', words(...command), { stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  peer.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece
  })
  await once(peer, 'close')
  return Number.parseFloat(text) * 1000 - started
}

async function idle(folder: string, name: string, command: readonly string[], afterMs: number): Promise<void> {
  for (const ring of ['32', '4']) {
    const outbox = mkdtempSync(join(folder, 'outbox-'))
    const collector = startCollector(folder, command, outbox, ['--ring-size', ring])
    await waitForOutput(collector, '"msg":"watching"')
    await sleep(afterMs)
    const resident = memoryBytes(collector.pid ?? 0, 'VmRSS')
    const anonymous = memoryBytes(collector.pid ?? 0, 'RssAnon')
    collector.kill('SIGKILL')
    await once(collector, 'close')
    print(
      `  idle, ring of ${ring.padStart(2)} MB: ${name.padEnd(36)} ${megabytes(resident)} MB resident, ${megabytes(anonymous)} MB of it anonymous`,
    )
  }
  const [node = ''] = command
  if (!node.endsWith('/node')) return
  const bare = spawn(node, ['-e', `setTimeout(() => {}, ${IDLE_MS * 2})`])
  await sleep(1000)
  print(
    `  idle, Node alone:     ${' '.repeat(name.length)} ${megabytes(memoryBytes(bare.pid ?? 0, 'VmRSS'))} MB resident`,
  )
  bare.kill('SIGKILL')
  await once(bare, 'close')
}

function startCollector(
  folder: string,
  command: readonly string[],
  outbox: string,
  more: readonly string[],
): ChildProcess {
  const settings = ['--interface', 'far', '--outbox', outbox, '--endpoint', '127.0.0.1', '--user', 'root', ...more]
  // ip executes the command in its own process, and a starter script executes Node, so the process
  // is the collector.
  return spawn('ip', words(...command, 'run', ...settings), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment(folder),
  })
}

function environment(folder: string): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], HOME: folder, SVC_TOKEN: TOKEN, HEALTH_PORT: '19092' }
}

async function waitForOutput(child: ChildProcess, what: string): Promise<void> {
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
  }
  for (let tries = 0; tries < 1000; tries++) {
    if (text.includes(what)) return
    if (child.exitCode !== null) break
    await sleep(10)
  }
  throw new Error(`waited in vain for ${what}: ${text}`)
}

function words(...command: string[]): string[] {
  return ['netns', 'exec', NETWORK, ...command]
}

function inside(...command: string[]): void {
  ip(...words(...command))
}

function ip(...command: string[]): void {
  execFileSync('ip', command, { stdio: 'pipe' })
}

function note(times: Map<string, number[]>, name: string, ms: number): void {
  times.set(name, [...(times.get(name) ?? []), ms])
}
