import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Administration } from '../engine/admin/administration.ts'
import { systemClock } from '../engine/process/clock.ts'
import { askLocal } from '../engine/process/local-server.ts'
import { Store } from '../engine/store/store.ts'
import { freePort } from '../test/support/free-port.ts'
import { median, print } from './compare.ts'
import { cpuSeconds, megabytes, memoryBytes } from './machine.ts'
import { startSyslogNg } from './peers/syslog-ng.ts'
import type { SyslogSending, SyslogSent } from './syslog-sender.ts'
import { countedMessages, MATCH_EVERY, MESSAGE_BYTES } from './workload/syslog-messages.ts'

/**
 * Syslog messages per second, from the first byte to the last matched message on disk, with all
 * features on: token checks, format detection, name matching, scans. For comparison, syslog-ng
 * writes the same messages from the same sender to a file.
 */
const AIM = 1
const CONNECTIONS = 2
const BLOCK_MESSAGES = 20_000
const SERVICE = fileURLToPath(new URL('../api/main.js', import.meta.url))
const SENDER = fileURLToPath(new URL('./syslog-sender.js', import.meta.url))
/** Outcomes of messages in the service's metrics: listener and count. */
const MESSAGES = /^posture_ingest_messages_total\{listener="(\w+)",outcome="\w+"\} (\d+)$/gm

interface Contender {
  readonly name: string
  readonly version: string
  readonly pid: number
  readonly port: number
  readonly tls: boolean
  /**
   * Prepares for messages. The returned function resolves when this many more messages were
   * accepted.
   */
  ready(): Promise<(messages: number) => Promise<void>>
  stop(): Promise<void>
}

export async function syslogMessages({ toy }: { toy: boolean }): Promise<void> {
  const rounds = toy ? 1 : 5
  const times = toy ? 1 : 50
  const block = toy ? 1000 : BLOCK_MESSAGES
  const messages = CONNECTIONS * times * block
  const directory = mkdtempSync(join(tmpdir(), 'posture-bench-'))
  const sender = fork(SENDER)
  const contenders: Contender[] = []
  try {
    const file = join(directory, 'messages')
    await startAll(contenders, directory, file, block)
    const rates = contenders.map(() => [] as number[])
    const cpus = contenders.map(() => [] as number[])
    for (let round = 0; round < rounds; round++) {
      for (const [index, contender] of contenders.entries()) {
        const sending: SyslogSending = {
          port: contender.port,
          tls: contender.tls,
          connections: CONNECTIONS,
          file,
          times,
        }
        const accepted = await contender.ready()
        const cpuBefore = cpuSeconds(contender.pid)
        const start = performance.now()
        sender.send(sending)
        await Promise.all([once(sender, 'message') as Promise<[SyslogSent]>, accepted(messages)])
        rates[index]?.push(messages / ((performance.now() - start) / 1000))
        cpus[index]?.push((cpuSeconds(contender.pid) - cpuBefore) / (messages / 1e6))
      }
    }
    print(
      `syslog: ${messages} RFC 5424 messages of ${MESSAGE_BYTES} bytes a round over ${CONNECTIONS} connections, octet counting, 1 of ${MATCH_EVERY} matches; until all are stored, or in the file; medians of ${rounds} rounds in turns`,
    )
    for (const tls of [false, true]) {
      const of = (name: string): number => contenders.findIndex((one) => one.tls === tls && one.name.startsWith(name))
      const own = of('posture')
      const ours = median(rates[own] ?? [])
      print(`${tls ? 'TLS' : 'TCP'}  ${shown(ours)} messages/s, ${median(cpus[own] ?? []).toFixed(2)} us CPU a message`)
      for (const [index, { name, version, tls: itsTls }] of contenders.entries()) {
        if (index === own || itsTls !== tls) continue
        const peer = median(rates[index] ?? [])
        const aim =
          !tls && name.endsWith('file')
            ? `; aim ${AIM.toFixed(1)}x ${ours >= peer * AIM ? 'reached' : 'not reached'}`
            : ''
        print(
          `  ${(ours / peer).toFixed(2)}x of ${name} ${version}  (${shown(peer)} messages/s, ${median(cpus[index] ?? []).toFixed(2)} us CPU)${aim}`,
        )
      }
    }
    print(`resident: ${megabytes(memoryBytes(contenders[0]?.pid ?? 0, 'VmRSS'))} MB of the service`)
  } finally {
    sender.disconnect()
    for (const contender of contenders) await contender.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

/**
 * Checks that a hundred million messages do not increase memory: resident memory after each tenth,
 * and syslog-ng's after one.
 */
export async function memoryOverMessages({ toy }: { toy: boolean }): Promise<void> {
  const TENTHS = 10
  const block = toy ? 1000 : BLOCK_MESSAGES
  const times = toy ? 1 : 250
  const messages = CONNECTIONS * times * block
  const directory = mkdtempSync(join(tmpdir(), 'posture-bench-'))
  const sender = fork(SENDER)
  const contenders: Contender[] = []
  try {
    const file = join(directory, 'messages')
    await startAll(contenders, directory, file, block)
    const send = async (contender: Contender): Promise<string> => {
      const accepted = await contender.ready()
      sender.send({
        port: contender.port,
        tls: contender.tls,
        connections: CONNECTIONS,
        file,
        times,
      } satisfies SyslogSending)
      await Promise.all([once(sender, 'message'), accepted(messages)])
      return `${megabytes(memoryBytes(contender.pid, 'VmRSS'))} (${megabytes(memoryBytes(contender.pid, 'RssAnon'))})`
    }
    const [ours, , peer] = contenders
    if (ours === undefined || peer === undefined) throw new Error('no contender')
    const after: string[] = []
    for (let tenth = 0; tenth < TENTHS; tenth++) after.push(await send(ours))
    const peerAfter = await send(peer)
    print(
      `memory: ${TENTHS} times ${messages} messages over TCP; resident MB after each, and of it anonymous: ${after.join(', ')}  | ${peer.name} ${peer.version}: ${peerAfter} after one`,
    )
  } finally {
    sender.disconnect()
    for (const contender of contenders) await contender.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Adds each contender as it starts, so that the caller stops them also if a later one fails. */
async function startAll(contenders: Contender[], directory: string, file: string, block: number): Promise<void> {
  const service = await startService(join(directory, 'service'))
  writeFileSync(file, countedMessages(block, service.token))
  const own = (tls: boolean): Contender => ({
    name: 'posture-service',
    version: '',
    pid: service.child.pid ?? 0,
    port: tls ? service.tlsPort : service.tcpPort,
    tls,
    ready: () => service.ready(tls ? 'tls' : 'tcp'),
    stop: service.stop,
  })
  contenders.push(own(false), own(true))
  for (const tls of [false, true]) {
    for (const parse of [false, true]) {
      const folder = join(directory, `syslog-ng-${tls}-${parse}`)
      mkdirSync(folder)
      const port = await freePort()
      const peer = await startSyslogNg({ directory: folder, port, tls: tls ? service.certificate : undefined, parse })
      contenders.push({
        name: parse ? 'syslog-ng that parses by csv-parser into a file' : 'syslog-ng into a plain file',
        version: peer.version,
        pid: peer.pid,
        port,
        tls,
        ready: async () => {
          peer.empty()
          return (messages) => peer.lines(messages)
        },
        stop: peer.stop,
      })
    }
  }
}

interface Service {
  readonly child: ChildProcess
  readonly token: string
  readonly tcpPort: number
  readonly tlsPort: number
  readonly certificate: { readonly keyFile: string; readonly certificateFile: string }
  ready(listener: string): Promise<(messages: number) => Promise<void>>
  stop(): Promise<void>
}

/** The service as installed. */
export async function startService(dataDirectory: string): Promise<Service> {
  const store = new Store(dataDirectory)
  const administration = new Administration(store, systemClock)
  const organization = administration.organizations.create({
    name: 'Bench',
    domain: 'bench.example',
    plan: 'enterprise',
  })
  const { raw: token } = administration.tokens.generate(organization, 'bench')
  await store.close()
  const any = '127.0.0.1:0'
  const listeners = ['--syslog-tcp', any, '--syslog-tls', any, '--syslog-udp', 'off', '--ingest-port', 'off']
  const ports = [
    '--api-address',
    '127.0.0.1',
    '--api-port',
    '0',
    '--console-port',
    'off',
    '--metrics-port',
    '0',
    '--log-level',
    'WARNING',
  ]
  const child = fork(SERVICE, ['--data-dir', dataDirectory, ...listeners, ...ports])
  const [listening] = (await once(child, 'message')) as [
    { metricsPort: number; syslog: readonly { kind: string; port: number }[] },
  ]
  const portOf = (kind: string): number => listening.syslog.find((one) => one.kind === kind)?.port ?? 0
  const settled = async (listener: string): Promise<number> => {
    const { text } = await askLocal(listening.metricsPort, '/metrics')
    let sum = 0
    for (const [, its, count] of text.matchAll(MESSAGES)) if (its === listener) sum += Number(count)
    return sum
  }
  return {
    child,
    token,
    tcpPort: portOf('tcp'),
    tlsPort: portOf('tls'),
    certificate: {
      keyFile: join(dataDirectory, 'tls/key.pem'),
      certificateFile: join(dataDirectory, 'tls/certificate.pem'),
    },
    async ready(listener) {
      const before = await settled(listener)
      return async (messages) => {
        while ((await settled(listener)) < before + messages) await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}

function shown(rate: number): string {
  return Math.round(rate).toLocaleString('en')
}
