import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import t from 'tap'
import { DAY_MS } from '../../engine/kernel/process/clock.ts'
import { newUuid } from '../../engine/store/keys.ts'
import { alertSite, webhookReceiver } from '../support/alerts.ts'
import { startService } from '../support/programs.ts'
import { smtpServer } from '../support/smtp-server.ts'
import { syslogNg } from '../support/syslog-ng.ts'
import { until } from '../support/wait.ts'

/*
 * Kills the process that evaluates and sends alerts, at fault points and at random instants, with
 * real receivers. Afterwards each receiver must have each alert at least once, with one id, in
 * order of their first arrivals. ALERT_KILLS and ALERT_SEED repeat a run.
 */
const KILLS = Number(process.env['ALERT_KILLS'] ?? 40)
const SEED = Number(process.env['ALERT_SEED'] ?? Math.floor(Date.now() / 1000))
/** Of these, kills of posture-service itself, which starts more slowly. */
const SERVICE_KILLS = Math.min(10, Math.floor(KILLS / 20))
const FAULT_POINTS = [
  ...['alerts:prepared', 'alerts:queued', 'alerts:written'],
  ...['alerts:before-send', 'alerts:after-send', 'alerts:delivered'],
]
/** A random kill is at most this long after the process began to work. */
const RANDOM_KILL_MS = 60

t.test(`${KILLS} kills lose and duplicate no alert, seed ${SEED}`, { timeout: 1_200_000 }, async (t) => {
  const syslog = await syslogNg(t)
  const directory = join(syslog.directory, 'alerts')
  mkdirSync(directory)
  const site = alertSite({ testdir: () => directory, teardown: (work) => t.teardown(work) })
  const { store, organization } = site
  const webhook = await webhookReceiver(t)
  const plain = { authOptional: true, disabledCommands: ['STARTTLS', 'AUTH'] }
  const mailServer = await smtpServer(t, directory, plain)
  site.addChannel({ kind: 'webhook', url: webhook.url })
  const mail = { from: 'posture@acme.example', to: ['soc@acme.example'], tls: 'off' }
  site.addChannel({ kind: 'smtp', host: '127.0.0.1', port: mailServer.port, ...mail })
  site.addChannel({ kind: 'syslog', host: '127.0.0.1', port: syslog.ports.tcp, transport: 'tcp' })

  const random = randomOf(SEED)
  /** An API key that expires soon raises one alert. */
  let keys = 0
  const addKey = (): void => {
    keys++
    const nowMs = Date.now()
    const secret = { id: newUuid(), organizationId: organization.id, label: `key ${keys}`, visible: '00000000' }
    const times = { createdAtMs: nowMs, revokedAtMs: 0, expiresAtMs: nowMs + DAY_MS }
    store.environment.write(() => {
      store.apiKeys.add({ ...secret, ...times, hash: String(keys).padStart(64, '0'), scopes: ['scores:read'] })
    })
  }
  let atFaultPoints = 0
  for (let kill = 0; kill < KILLS - SERVICE_KILLS; kill++) {
    addKey()
    const point = random() < 0.6 ? FAULT_POINTS[Math.floor(random() * FAULT_POINTS.length)] : undefined
    const child = startProcess(site.directory, point)
    const exit = once(child, 'exit')
    const idle = until('idle', () => child.exitCode !== null || child.signalCode !== null || isIdle.has(child))
    if (point === undefined) {
      await Promise.race([started(child), exit])
      await Promise.race([later(random() * RANDOM_KILL_MS), exit])
    } else await Promise.race([idle, exit])
    if (child.signalCode !== null) atFaultPoints++
    child.kill('SIGKILL')
    await exit
  }
  t.ok(atFaultPoints > (KILLS - SERVICE_KILLS) / 4, `${atFaultPoints} kills at fault points`)
  for (let kill = 0; kill < SERVICE_KILLS; kill++) {
    addKey()
    const service = await startService(site.directory, ['--outbound-networks', '127.0.0.0/8'])
    await later(random() * 1000)
    service.child.kill('SIGKILL')
    await service.ended
  }
  const last = startProcess(site.directory, undefined)
  const exited = once(last, 'exit')
  const channels = store.alertChannels.ofOrganization(organization.id)
  await until('empty queues', () =>
    channels.every(({ id }) => store.environment.read(() => store.alertChannels.waiting(organization.id, id)) === 0),
  )
  last.kill('SIGKILL')
  await exited

  const alerts = store.environment.read(() => store.alerts.newest(organization.id, 10_000)).reverse()
  t.equal(alerts.length, keys, 'one alert for each key')
  const expected = alerts.map(({ id }) => id)
  t.equal(new Set(expected).size, keys)
  const first = (ids: readonly string[]): string[] => [...new Set(ids)]
  t.same(first(webhook.received.flatMap(({ message }) => message.alerts.map(({ id }) => id))), expected, 'webhook')
  const inMail = mailServer.mails.flatMap(({ text }) =>
    [...text.matchAll(/^ {4}Id: ([0-9a-f]{32})/gm)].map(([, id = '']) => id),
  )
  t.same(first(inMail), expected, 'mail')
  await until('syslog', () => new Set(syslog.received().map(({ id }) => id)).size >= keys)
  t.same(first(syslog.received().map(({ id }) => id)), expected, 'syslog')
  for (const { id } of channels) {
    t.equal(
      store.environment.read(() => store.alertChannels.deadLetterCount(organization.id, id)),
      0,
    )
  }
})

const isIdle = new WeakSet<ChildProcess>()
const hasStarted = new WeakSet<ChildProcess>()

function startProcess(directory: string, faultPoint: string | undefined): ChildProcess {
  const child = fork(
    new URL('../support/alert-process.js', import.meta.url),
    [directory, join(directory, 'secrets.key')],
    {
      env: { ...process.env, ...(faultPoint === undefined ? {} : { POSTURE_FAULT_POINT: faultPoint }) },
    },
  )
  child.on('message', (message) => (message === 'idle' ? isIdle : hasStarted).add(child))
  return child
}

function started(child: ChildProcess): Promise<unknown> {
  return until('a start', () => hasStarted.has(child) || child.exitCode !== null)
}

/** A small generator of random numbers (mulberry32), so that a seed repeats a run. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
