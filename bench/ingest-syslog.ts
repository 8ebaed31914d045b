import { fork } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { askLocal } from '../engine/kernel/process/local-server.ts'
import { freePort } from '../test/support/free-port.ts'
import { admin, startService } from '../test/support/programs.ts'
import { type Figure, inDirectory, inTurn, memoryMb, messageOf, perSecond, type Size, stopped } from './harness.ts'
import { startSyslogNg } from './peers/syslog-ng.ts'
import type { SyslogSending } from './syslog-sender.ts'
import { countedMessages } from './workload/syslog-messages.ts'

/**
 * Syslog messages per second, from the first byte to the last matched message on disk, with all
 * features on: token checks, format detection, name matching, scans. For comparison, syslog-ng
 * writes the same messages from the same sender to a file.
 */
const CONNECTIONS = 2
const SENDER = fileURLToPath(new URL('./syslog-sender.js', import.meta.url))
/** Outcomes of messages in the service's metrics: listener and count. */
const MESSAGES = /^posture_ingest_messages_total\{listener="(\w+)",outcome="\w+"\} (\d+)$/gm
const POLL_MS = 20
/** The growth that counts as none. */
const FLAT = 1.1

interface Receiver {
  readonly name: string
  readonly pid: number
  readonly port: number
  readonly tls: boolean
  /** Prepares for messages. The returned function resolves when so many more were accepted. */
  ready(): Promise<(messages: number) => Promise<unknown>>
}

/** Receivers of one sender. `send` returns the messages per second of a round. */
export interface SyslogSite {
  readonly receivers: readonly Receiver[]
  send(receiver: Receiver, times: number): Promise<number>
}

export async function run(size: Size): Promise<Figure[]> {
  const [rounds, times] = { full: [5, 50], short: [1, 25], toy: [1, 1] }[size] as [number, number]
  return withSyslogSite(size, async ({ receivers, send }) => {
    const figures: Figure[] = []
    for (const tls of [false, true]) {
      const both = receivers.filter((receiver) => receiver.tls === tls)
      const contenders = both.map((each) => ({ name: each.name, run: () => send(each, times) }))
      const what = `syslog over ${tls ? 'TLS' : 'TCP'}`
      figures.push({
        what,
        unit: 'messages/s',
        ...(await inTurn(rounds, contenders)),
        aim: { ratio: true, atLeast: 1 },
      })
    }
    return figures
  })
}

/** Resident memory after ten and a hundred million messages, and syslog-ng's after ten. */
export async function memoryFigures(size: Size): Promise<Figure[]> {
  const times = size === 'toy' ? 1 : 250
  return withSyslogSite(size, async ({ receivers: [ours, peer], send }) => {
    if (ours === undefined || peer === undefined) throw new Error('no receiver')
    await send(peer, times)
    const peers = [{ name: peer.name, value: memoryMb(peer.pid, 'VmRSS') }]
    await send(ours, times)
    const first = memoryMb(ours.pid, 'VmRSS')
    for (let tenth = 1; tenth < 10; tenth++) await send(ours, times)
    const aim = { atMost: FLAT * first }
    return [
      { what: 'resident after a tenth of the messages', unit: 'MB', ours: first, peers },
      { what: 'resident after all messages', unit: 'MB', ours: memoryMb(ours.pid, 'VmRSS'), aim },
    ]
  })
}

async function withSyslogSite<T>(size: Size, work: (site: SyslogSite) => Promise<T>): Promise<T> {
  const block = size === 'toy' ? 1000 : 20_000
  return inDirectory(async (directory) => {
    const data = join(directory, 'service')
    const any = '127.0.0.1:0'
    const listeners = ['--syslog-tcp', any, '--syslog-tls', any, '--ingest-port', 'off', '--console-port', 'off']
    const service = await startService(data, listeners)
    const sender = fork(SENDER)
    const ends: (() => Promise<unknown>)[] = []
    try {
      await admin('organization', 'create', 'Bench', '--domain', 'bench.example', '--data-dir', data)
      const [token] = await admin('token', 'generate', 'bench', '--org', 'Bench', '--data-dir', data)
      const file = join(directory, 'messages')
      writeFileSync(file, countedMessages(block, String(token?.['token'])))
      const receivers: Receiver[] = []
      for (const kind of ['tcp', 'tls'] as const) {
        const tls = kind === 'tls'
        const port = service.syslog.find((each) => each.kind === kind)?.port ?? 0
        const ready = () => readyFor(service.metricsPort, kind)
        receivers.push({ name: 'ours', pid: service.child.pid ?? 0, port, tls, ready })
        const folder = join(directory, `syslog-ng-${kind}`)
        mkdirSync(folder)
        const keys = { keyFile: join(data, 'tls/key.pem'), certificateFile: join(data, 'tls/certificate.pem') }
        const at = await freePort()
        const peer = await startSyslogNg({ directory: folder, port: at, tls: tls ? keys : undefined })
        ends.push(() => peer.stop())
        const empty = async () => {
          peer.empty()
          return (messages: number) => peer.lines(messages)
        }
        receivers.push({ name: `syslog-ng ${peer.version}`, pid: peer.pid, port: at, tls, ready: empty })
      }
      const send = async ({ port, tls, ready }: Receiver, times: number): Promise<number> => {
        const accepted = await ready()
        const messages = CONNECTIONS * times * block
        const start = performance.now()
        sender.send({ port, tls, connections: CONNECTIONS, file, times } satisfies SyslogSending)
        await Promise.all([messageOf(sender), accepted(messages)])
        return perSecond(messages, start)
      }
      return await work({ receivers, send })
    } finally {
      sender.disconnect()
      for (const end of ends) await end()
      await stopped(service.child)
    }
  })
}

async function readyFor(metricsPort: number, listener: string): Promise<Awaited<ReturnType<Receiver['ready']>>> {
  const settled = async (): Promise<number> => {
    const { text } = await askLocal(metricsPort, '/metrics')
    return [...text.matchAll(MESSAGES)].reduce(
      (sum, [, its, count]) => (its === listener ? sum + Number(count) : sum),
      0,
    )
  }
  const before = await settled()
  return async (messages) => {
    // Each poll of the metrics costs the service CPU time.
    while ((await settled()) < before + messages) await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}
