import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { captureFilter, DNS_PORTS, TLS_PORTS } from '../collector/capture/bpf.ts'
import { allocateBatch, BatchState, FrameBatch } from '../collector/capture/frame-batch.ts'
import { BatchDecoder } from '../collector/decode/decode-batch.ts'
import { BATCH_FRAME_BYTES, BATCH_ROW_BYTES } from '../collector/limits.ts'
import { observe } from '../collector/observe.ts'
import { loadCatalog } from '../registry/catalog.ts'
import { compileTrie } from '../registry/compile-trie.ts'
import { ethernet, ipv4, type Transport, tcp, udp } from '../test/support/packets.ts'
import { dnsQuery } from '../test/support/packets-dns.ts'
import { framesAt, pcapFile } from '../test/support/packets-pcap.ts'
import { applicationData, clientHello, fill, tlsRecords } from '../test/support/packets-tls.ts'

/**
 * Reading a capture file to its names, as a whole process, beside tcpdump that reads the same file through the same filter and writes
 * what it keeps to /dev/null; and the decode loop alone, in packets a second. The mix: 10 % DNS queries, 4 % ClientHellos, 1 % QUIC,
 * the rest data of 1.2 kB.
 */
const RUNS = 5

export async function run(options: { toy: boolean }): Promise<void> {
  const packets = options.toy ? 2_000 : 1_000_000
  const folder = mkdtempSync(join(tmpdir(), 'bench-decode-'))
  const path = join(folder, 'mix.pcap')
  try {
    const expected = writeMix(path, packets)
    say(`decode: ${packets} packets, ${expected} names`)
    decodeLoop(packets)
    const version = versionOf('tcpdump')
    if (version === undefined) {
      say('tcpdump is not installed: nothing to compare with')
      if (!options.toy) process.exitCode = 1
      return
    }
    const filter = captureFilter(DNS_PORTS, TLS_PORTS, false)
    // Answers first: each packet that the filter keeps has one name.
    same('ours', readInOwnProcess(path), expected)
    same('tcpdump', tcpdumpCount(path, filter), expected)
    const ours = new Timing()
    const peer = new Timing()
    for (let run = 0; run < (options.toy ? 1 : RUNS); run++) {
      ours.time(() => readInOwnProcess(path))
      peer.time(() => execFileSync('tcpdump', ['-r', path, '-w', '/dev/null', filter], { stdio: 'pipe' }))
    }
    say(
      `decode+match  ${(ours.medianMs / peer.medianMs).toFixed(2)}x ${version}  (${ours.text} | ${peer.text})  names equal`,
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The mix, written piece by piece; the number of names in it. */
function writeMix(path: string, packets: number): number {
  const frames = mixOf(fill(1))
  const names = frames.filter(({ named }) => named).length
  const header = pcapFile([])
  const records = pcapFile(
    framesAt(
      Date.UTC(2026, 2, 3),
      frames.map(({ bytes }) => bytes),
    ),
  ).subarray(header.length)
  const file = openSync(path, 'w')
  writeSync(file, header)
  for (let written = 0; written < packets; written += frames.length) writeSync(file, records)
  closeSync(file)
  return (packets / frames.length) * names
}

/** A thousand frames in the proportions of the mix. */
function mixOf(bytes: (count: number) => Buffer): { bytes: Buffer; named: boolean }[] {
  const hosts = [
    'chatgpt.com',
    'www.example.org',
    'api.anthropic.com',
    'cdn.example.net',
    'news.example.com',
    'intranet.example',
  ]
  return Array.from({ length: 1000 }, (_frame, index) => {
    const source = `10.1.${index % 7}.${1 + (index % 200)}`
    const frame = (transport: Transport) =>
      ethernet({}, ipv4({ source, destination: `198.51.100.${1 + (index % 250)}` }, transport))
    const sourcePort = 40_000 + index
    const host = hosts[index % hosts.length] as string
    const kind = (index * 37) % 100
    if (kind < 10) return { bytes: frame(udp({ sourcePort, destinationPort: 53 }, dnsQuery([host]))), named: true }
    if (kind < 14) {
      const hello = tlsRecords(clientHello({ serverName: host, grease: true, postQuantum: kind < 12, seed: index }))
      return { bytes: frame(tcp({ sourcePort, destinationPort: 443 }, hello.subarray(0, 1460))), named: true }
    }
    if (kind < 15) return { bytes: frame(udp({ sourcePort, destinationPort: 443 }, bytes(1200))), named: false }
    return {
      bytes: frame(tcp({ sourcePort: 443, destinationPort: sourcePort }, applicationData(bytes(1140)))),
      named: false,
    }
  })
}

/** The loop of one decode worker over batches that lie ready in memory. */
function decodeLoop(packets: number): void {
  const batch = new FrameBatch(allocateBatch(BATCH_FRAME_BYTES, BATCH_ROW_BYTES), 0)
  const decoder = new BatchDecoder(compileTrie(loadCatalog().rules), false)
  const frames = mixOf(fill(1)).map(({ bytes }) => bytes)
  batch.tryTake()
  batch.beginFilling(0, 1)
  for (const frame of frames) {
    if (!batch.fits(frame.length)) break
    batch.put(frame, 0, frame.length, frame.length, 1, 0, 0, 0)
  }
  batch.pass(BatchState.filling, BatchState.ready)
  const turns = Math.ceil((packets * 10) / batch.frames)
  const heapBefore = process.memoryUsage().heapUsed
  const startMs = performance.now()
  for (let turn = 0; turn < turns; turn++) {
    if (!decoder.decode(batch)) throw new Error('the rows area is too small for the bench')
    batch.endRun({ frame: 0, offset: 0, index: 0 }, batch.run)
  }
  const seconds = (performance.now() - startMs) / 1000
  const heapKb = Math.round((process.memoryUsage().heapUsed - heapBefore) / 1024)
  const decoded = turns * batch.frames
  say(
    `decode loop  ${(decoded / seconds / 1e6).toFixed(2)} million packets/s over ${decoded}, heap ${heapKb} kB more, matched ${batch.run.matched}`,
  )
}

class Timing {
  readonly #times: number[] = []

  time(once: () => unknown): void {
    const startMs = performance.now()
    once()
    this.#times.push(performance.now() - startMs)
    this.#times.sort((a, b) => a - b)
  }

  get medianMs(): number {
    return this.#times[this.#times.length >> 1] as number
  }

  get text(): string {
    const spread = ((this.#times.at(-1) as number) - (this.#times[0] as number)) / 2 / this.medianMs
    return `${(this.medianMs / 1000).toFixed(2)} s ±${Math.round(spread * 100)}%`
  }
}

/** Reads the file in a process of its own and gives the number of names. */
function readInOwnProcess(path: string): number {
  const self = fileURLToPath(import.meta.url)
  return Number(execFileSync(process.execPath, [self, 'read', path], { encoding: 'utf8' }))
}

/** What the process of its own does. */
async function read(path: string): Promise<void> {
  const trie = compileTrie(loadCatalog().rules)
  const observation = await observe({ kind: 'file', path }, { trie, lanes: 1, onNames: () => {} })
  await observation.done
  process.stdout.write(String(observation.counts.names))
}

function tcpdumpCount(path: string, filter: string): number {
  const counted = spawnSync('tcpdump', ['--count', '-r', path, filter], { encoding: 'utf8' })
  return Number(/^(\d+) packet/m.exec(counted.stdout + counted.stderr)?.[1])
}

function versionOf(program: string): string | undefined {
  const asked = spawnSync(program, ['--version'], { encoding: 'utf8' })
  return asked.error === undefined ? (asked.stdout + asked.stderr).split('\n')[0] : undefined
}

function same(whose: string, found: number, expected: number): void {
  if (found !== expected) throw new Error(`${whose}: found ${found} names, expected ${expected}`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

if (process.argv[2] === 'read') await read(process.argv[3] as string)
