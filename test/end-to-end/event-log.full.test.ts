import { createSocket } from 'node:dgram'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { jetstream } from '@nats-io/jetstream'
import t, { type Test } from 'tap'
import { partitionOf } from '../../engine/cluster/log/event-log.ts'
import { packBatch } from '../../engine/kernel/event/event.ts'
import { askLocal } from '../../engine/kernel/process/local-server.ts'
import { Store } from '../../engine/store/store.ts'
import { matchesInScans } from '../crash/oracle.ts'
import { Brokers } from '../support/brokers.ts'
import { httpsClient } from '../support/https.ts'
import { admin, type RunningService, run, runAdmin, startService } from '../support/programs.ts'
import { findingsOf, Sender } from '../support/store.ts'
import { sendTcp } from '../support/syslog-sender.ts'
import { organizationWithToken, rfc5424, squid } from '../support/syslog-service.ts'
import { testFolder } from '../support/test-folder.ts'
import { until } from '../support/wait.ts'

const BATCHES = 20
const EVENTS = 50
/** Datagrams that are sent before the next look at whether some wait. */
const DATAGRAMS = 1000
/** Many times more than the batches of an organization in transit have. */
const DATAGRAMS_MAX = 60_000
const ATTEMPTS = 5

/** A service with brokers, and a sender that knows what was acknowledged. */
class Site {
  readonly data: readonly string[]
  readonly #directory: string
  readonly #brokers: Brokers
  readonly #sender = new Sender()
  /** The last batch that was acknowledged. */
  batch: Uint8Array = new Uint8Array()
  token = ''
  organizationId = ''

  constructor(directory: string, brokers: Brokers) {
    this.#directory = join(directory, 'data')
    this.data = ['--data-dir', this.#directory]
    this.#brokers = brokers
  }

  async makeOrganization(): Promise<void> {
    const made = await organizationWithToken(this.#directory)
    this.organizationId = made.organizationId
    this.token = made.token
  }

  async start(t: Test): Promise<RunningService> {
    const service = await startService(this.#directory, [
      ...this.#brokers.parameters,
      ...['--broker-events-max-mb', '256', '--syslog-tcp', '127.0.0.1:0', '--syslog-udp', '127.0.0.1:0'],
    ])
    t.teardown(() => {
      service.child.kill('SIGKILL')
      if (!t.passing() || process.env['VERBOSE']) t.comment(service.output.stderr)
    })
    return service
  }

  /** Sends batches by HTTPS until each is acknowledged. */
  async send(t: Test, { ingestPort }: RunningService): Promise<void> {
    const { ask, close } = httpsClient(ingestPort, join(this.#directory, 'tls/certificate.pem'))
    const headers = { authorization: `Bearer ${this.token}`, 'content-type': 'application/msgpack' }
    for (let batch = 0; batch < BATCHES; batch++) {
      const events = Array.from({ length: EVENTS }, () => this.#sender.event('claude.ai', Date.now()))
      this.batch = packBatch(events)
      const answer = await ask('/ingest/v1/events', { method: 'POST', headers, body: this.batch })
      t.match(answer, { status: 200, body: { accepted: EVENTS, duplicates: 0 } }, `batch ${batch}`)
    }
    await close()
  }

  /** Waits until the service is the primary and its store has what the brokers have. */
  async settle({ metricsPort }: RunningService): Promise<string> {
    return until('the log is not read', async () => {
      const { text } = await askLocal(metricsPort, '/metrics')
      return /^posture_log_unread_batches 0$/m.test(text) && text
    })
  }

  /** The events of the store, after a scan. */
  async events(t: Test): Promise<number | undefined> {
    await admin('scan', 'run', '--org', 'Acme', ...this.data)
    const store = new Store(this.#directory, { mustExist: true })
    t.same(findingsOf(store), [])
    const names = matchesInScans(store, this.organizationId).get('claude')
    await store.close()
    return names?.get('claude.ai')
  }

  destroyData(): void {
    rmSync(this.#directory, { recursive: true })
  }
}

t.test('with the log of brokers, a lost disk costs no acknowledged event', async (t) => {
  const directory = testFolder(t)
  const brokers = await Brokers.start(t, { directory: join(directory, 'brokers') })
  const site = new Site(directory, brokers)
  await site.makeOrganization()
  const first = await site.start(t)
  await until('no snapshot was made', () => /made a snapshot/.test(first.output.stderr))
  await site.send(t, first)
  await site.settle(first)
  t.equal(await site.events(t), BATCHES * EVENTS)
  // The copy of a backup is not one of the cluster.
  const backup = join(directory, 'a.backup')
  await admin('backup', backup, ...site.data)
  await site.send(t, first)
  first.child.kill('SIGKILL')
  await first.ended
  site.destroyData()

  const second = await site.start(t)
  t.match(second.output.stderr, /joins the cluster with the last snapshot/)
  await until('not the primary', () => /reads the events in the log of the brokers/.test(second.output.stderr))
  const metrics = await site.settle(second)
  t.match(metrics, /^posture_log_up 1$/m)
  t.equal(await site.events(t), 2 * BATCHES * EVENTS, 'each event once')

  t.test('log messages take the same way', async (t) => {
    const sender = await sendTcp(t, portOf(second, 'tcp'))
    sender.send(`${rfc5424(site.token, squid('claude.ai', '10.0.0.9'))}\n`)
    await until('the message is not in the store', async () => {
      await site.settle(second)
      return (await site.events(t)) === 2 * BATCHES * EVENTS + 1
    })
    sender.socket.destroy()
  })
  t.test('a batch that is in the log twice counts once, because of the ids of its events', async (t) => {
    // Without an id of the message, brokers keep both, as after a failover.
    const connection = await brokers.connect()
    const subject = `ev.${partitionOf(site.organizationId)}.${site.organizationId}`
    const first = await jetstream(connection).publish(subject, site.batch)
    const again = await jetstream(connection).publish(subject, site.batch)
    await connection.close()
    t.same([again.seq, again.duplicate], [first.seq + 1, false])
    const metrics = await site.settle(second)
    t.match(metrics, `posture_ingest_events_total{outcome="duplicates"} ${2 * EVENTS}\n`)
    t.equal(await site.events(t), 2 * BATCHES * EVENTS + 1)
  })
  t.test('a sender waits while the brokers are down, and /healthz says so', async (t) => {
    for (const index of brokers.servers.keys()) await brokers.kill(index)
    const { text, status } = await until('healthy', async () => {
      const answer = await askLocal(second.metricsPort, '/healthz')
      return answer.status === 503 && answer
    })
    t.equal(status, 503)
    t.match(text, 'the log is not reachable, senders are asked to wait')
    for (const index of brokers.servers.keys()) brokers.restart(index)
    await until('not healthy again', async () => (await askLocal(second.metricsPort, '/healthz')).status === 200)
    await site.send(t, second)
    await site.settle(second)
    t.equal(await site.events(t), 3 * BATCHES * EVENTS + 1)
  })
  let fromDatagrams = 0
  t.test('datagrams wait for the brokers, because their senders cannot', async (t) => {
    const before = (await site.events(t)) ?? 0
    const datagrams = createSocket('udp4')
    t.teardown(() => datagrams.close())
    let sent = 0
    // On a slow machine, brokers may need longer than datagrams wait. Then the next time counts.
    for (let attempt = 1; ; attempt++) {
      for (const index of brokers.servers.keys()) await brokers.kill(index)
      let during = { waiting: 0, dropped: 0 }
      // The first ones are in transit to the brokers, and do not wait.
      for (const end = sent + DATAGRAMS_MAX; sent < end && during.waiting === 0; ) {
        for (const part = sent + DATAGRAMS; sent < part; sent++) {
          const message = rfc5424(site.token, squid('claude.ai', `10.${sent >> 16}.${(sent >> 8) & 255}.${sent & 255}`))
          await new Promise((resolve) => datagrams.send(message, portOf(second, 'udp'), '127.0.0.1', resolve))
          // Otherwise the kernel drops most of them.
          if (sent % 64 === 0) await until('datagrams are not read', () => unreadBytes(portOf(second, 'udp')) === 0)
        }
        during = await datagramsOf(second)
      }
      for (const index of brokers.servers.keys()) brokers.restart(index)
      await until('datagrams wait', async () => (await datagramsOf(second)).waiting === 0)
      const late = (await datagramsOf(second)).dropped - during.dropped
      t.comment(`${during.waiting} datagrams waited, ${late} of them for too long`)
      if (late < during.waiting) break
      if (attempt === ATTEMPTS) t.fail('none of the datagrams that waited was stored')
    }
    await until('not healthy again', async () => (await askLocal(second.metricsPort, '/healthz')).status === 200)
    const { dropped } = await datagramsOf(second)
    await until('not all are in the store', async () => {
      await site.settle(second)
      return (await site.events(t)) === before + sent - dropped
    })
    fromDatagrams = sent - dropped
  })
  t.test('a restored backup is a store of its own, which the brokers of the cluster refuse', async (t) => {
    second.child.kill('SIGTERM')
    t.match(await second.ended, { status: 0 })
    t.match(await runAdmin(['token', 'generate', 'more', '--org', 'Acme', ...site.data]), {
      status: 5,
      stderr: /NOT_PRIMARY.*no node is the primary at the moment/,
    })
    await admin('restore', backup, '--force', ...site.data)
    t.match(
      await run('service', [...site.data, ...brokers.parameters, '--metrics-port', '0', '--console-port', 'off']),
      { status: 5, stderr: /CONFLICT.*has organizations of its own, and the brokers have the store of a cluster/ },
    )
    t.match(await runAdmin(['cluster', 'status', ...site.data]), { status: 5, stderr: /NOT_FOUND/ })
  })
  t.test('after the loss of all brokers, the store is the first one of a new cluster', async (t) => {
    site.destroyData()
    const third = await site.start(t)
    await until('not the primary', () => /reads the events in the log of the brokers/.test(third.output.stderr))
    t.match(await runAdmin(['cluster', 'leave', ...site.data]), { status: 4, stderr: /STORE_IN_USE/ })
    third.child.kill('SIGTERM')
    await third.ended
    const others = new Site(directory, await Brokers.start(t, { directory: join(directory, 'other-brokers') }))
    Object.assign(others, { token: site.token, organizationId: site.organizationId })
    await t.rejects(others.start(t), /BROKERS_LOST.*run posture-admin cluster leave/)
    t.match(await admin('cluster', 'leave', ...site.data), [{ created: /^\d{4}-/ }])
    const service = await others.start(t)
    await others.send(t, service)
    await others.settle(service)
    t.equal(await others.events(t), 4 * BATCHES * EVENTS + 1 + fromDatagrams)
  })
})

function portOf({ syslog }: RunningService, kind: 'tcp' | 'udp'): number {
  return syslog.find((endpoint) => endpoint.kind === kind)?.port ?? 0
}

/** Bytes in the receive buffer of a UDP socket: `tx_queue:rx_queue` in hexadecimal (proc(5)). */
function unreadBytes(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')} `
  const row = readFileSync('/proc/self/net/udp', 'latin1')
    .split('\n')
    .find((line) => line.includes(local))
  return Number.parseInt(/ [0-9A-F]{8}:([0-9A-F]{8}) /.exec(row ?? '')?.[1] ?? 'none', 16)
}

/** How many datagrams wait, and how many were dropped. */
async function datagramsOf({ metricsPort }: RunningService) {
  const { text } = await askLocal(metricsPort, '/metrics')
  const sum = (name: string): number =>
    [...text.matchAll(new RegExp(`^posture_ingest_${name} (\\d+)$`, 'gm'))].reduce((all, [, n]) => all + Number(n), 0)
  return { waiting: sum('datagrams_waiting'), dropped: sum('datagrams_dropped_total\\{.*\\}') }
}

t.test('settings that need a log name it', async (t) => {
  const data = join(testFolder(t), 'data')
  t.match(await run('service', ['--data-dir', data, '--broker-ca-file', 'x']), {
    status: 2,
    stderr: /--broker-credentials-file and --broker-ca-file: without effect unless --brokers names brokers/,
  })
  t.match(await run('service', ['--data-dir', data, '--brokers', 'nats://a b:1']), {
    status: 2,
    stderr: /--brokers: expected comma-separated brokers, such as nats:\/\/broker-1.example:4222/,
  })
})
