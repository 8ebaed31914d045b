import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Administration } from '../engine/admin/administration.ts'
import { checkedChannel } from '../engine/admin/alert-settings.ts'
import { sealedChannel } from '../engine/admin/alerts.ts'
import { Deliveries } from '../engine/alert/deliveries.ts'
import { AlertEvaluator } from '../engine/alert/evaluator.ts'
import { systemClock } from '../engine/process/clock.ts'
import { createLogger } from '../engine/process/log.ts'
import { networkOf } from '../engine/process/network.ts'
import { SecretsKey } from '../engine/process/secrets-key.ts'
import { newUuid } from '../engine/store/keys.ts'
import type { Organization } from '../engine/store/organizations.ts'
import type { Recommendation } from '../engine/store/recommendations.ts'
import { Store } from '../engine/store/store.ts'
import { loadCatalog } from '../registry/catalog.ts'
import { NameMatcher } from '../registry/match.ts'
import { median, print, ratio, shown } from './compare.ts'

/**
 * How fast alerts are raised and delivered. Ours reads each message from its queue on disk,
 * decrypts the settings, signs the message, opens a connection, and removes the message when the
 * receiver accepted it. The loop posts the same bytes from memory, once with a connection for each
 * message, as ours, and once over one connection. The receiver is a process of its own.
 */
const ROUNDS = 5
const CHANNELS = [1, 10] as const
/** A channel keeps at most 1,000 waiting messages. */
const MESSAGES_EACH = 500

export async function run({ toy }: { toy: boolean }): Promise<void> {
  const receiver = fork(new URL('./alert-receiver.js', import.meta.url))
  const exited = once(receiver, 'exit')
  try {
    const [port] = (await once(receiver, 'message')) as [number]
    raise(toy ? 100 : 10_000)
    for (const channels of CHANNELS) await deliver(`http://127.0.0.1:${port}/`, channels, toy)
  } finally {
    receiver.kill()
    await exited
  }
}

function inStore<T>(work: (store: Store, organization: Organization, directory: string) => T): T {
  const directory = mkdtempSync(join(tmpdir(), 'posture-bench-'))
  const store = new Store(directory)
  const organization = store.environment.write(() =>
    store.organizations.create({ name: 'Acme', domain: 'acme.example', plan: 'enterprise' }, Date.now()),
  )
  const end = async (): Promise<void> => {
    await store.close()
    rmSync(directory, { recursive: true })
  }
  const result = work(store, organization, directory)
  if (result instanceof Promise) return result.finally(end) as T
  void end()
  return result
}

/** Many findings at once become stored alerts and a queued message, in one transaction. */
function raise(findings: number): void {
  const times = Array.from({ length: ROUNDS }, () =>
    inStore((store, organization, directory) => {
      addChannels(store, organization, directory, 1, 'http://127.0.0.1:9/')
      const evaluator = new AlertEvaluator(store, { matcherOf: () => MATCHER }, systemClock)
      store.environment.write(() => {
        for (let at = 0; at < findings; at++) store.recommendations.put(recommendation(organization, at))
      })
      const start = performance.now()
      const { alerts } = evaluator.evaluate(organization.id)
      const seconds = (performance.now() - start) / 1000
      if (alerts['recommendation-opened'] !== findings) throw new Error(`${JSON.stringify(alerts)} were raised`)
      return seconds
    }),
  )
  const seconds = median(times)
  print(
    `${shown(findings)} findings at once: raised and queued in ${(seconds * 1000).toFixed(0)} ms, ${shown(findings / seconds)} alerts/s`,
  )
}

const MATCHER = new NameMatcher(loadCatalog())

function recommendation({ id: organizationId }: Organization, at: number): Recommendation {
  const nowMs = Date.now()
  return {
    ...{ id: newUuid(), organizationId, frameworkId: 'hipaa', itemId: `I${at}`, title: `Do ${at}`, priority: 1 },
    ...{ status: 'open', category: 'All', createdAtMs: nowMs, statusChangedAtMs: nowMs, owner: '' },
  }
}

function addChannels(store: Store, organization: Organization, directory: string, count: number, url: string) {
  const { alerts } = new Administration(store, systemClock)
  const key = new SecretsKey(join(directory, 'secrets.key'))
  const channels = Array.from({ length: count }, (_, at) => {
    const checked = checkedChannel({ kind: 'webhook', url })
    if (checked.kind === 'invalid') throw new Error(JSON.stringify(checked.faults))
    const channel = { name: `c${at}`, severityMin: 'low', settings: checked.settings } as const
    return alerts.addChannel(organization, sealedChannel(key, organization, channel))
  })
  return { channels, key }
}

async function deliver(url: string, channelCount: number, toy: boolean): Promise<void> {
  const each = toy ? 5 : MESSAGES_EACH
  const rounds = toy ? 1 : ROUNDS
  const count = each * channelCount
  const body = JSON.stringify(message())
  const rates = { ours: [] as number[], connections: [] as number[], keepAlive: [] as number[] }
  const rate = async (work: () => Promise<void>): Promise<number> => {
    const start = performance.now()
    await work()
    return count / ((performance.now() - start) / 1000)
  }
  await inStore(async (store, organization, directory) => {
    const { channels, key: secrets } = addChannels(store, organization, directory, channelCount, url)
    const loopback = networkOf('127.0.0.0/8')
    const options = { secrets, allowed: loopback === undefined ? [] : [loopback], version: '1.0.0' }
    const log = createLogger('bench', 'ERROR')
    const deliveries = new Deliveries(store, systemClock, log, options)
    for (let round = 0; round < rounds; round++) {
      store.environment.write(() => {
        for (const { id } of channels) {
          for (let at = 0; at < each; at++) store.alertChannels.append(organization.id, id, body, Date.now())
        }
      })
      rates.ours.push(
        await rate(async () => {
          deliveries.poll()
          await deliveries.idle()
        }),
      )
      const { delivered } = channels.reduce(
        (sum, { id }) => ({ delivered: sum.delivered + store.alertChannels.state(organization.id, id).delivered }),
        { delivered: 0 },
      )
      if (delivered !== count * (round + 1)) throw new Error(`${delivered} messages were delivered`)
      for (const [name, keepAlive] of [['connections', false] as const, ['keepAlive', true] as const]) {
        const agents = channels.map(() => new Agent({ keepAlive, maxSockets: 1 }))
        rates[name].push(
          await rate(async () => {
            await Promise.all(agents.map((agent) => loop(url, agent, body, each)))
          }),
        )
        for (const agent of agents) agent.destroy()
      }
    }
    await deliveries.stop(0)
  })
  const ours = median(rates.ours)
  print(
    `${channelCount} channel${channelCount === 1 ? '' : 's'}, ${shown(count)} messages of ${body.length} bytes: delivered and removed durably ${shown(ours)}/s`,
  )
  const [connections, keepAlive] = [median(rates.connections), median(rates.keepAlive)]
  print(`  ${ratio(ours / connections)} node:http loop, a connection each, nothing stored  (${shown(connections)}/s)`)
  print(`  ${ratio(ours / keepAlive)} node:http loop, one connection, nothing stored  (${shown(keepAlive)}/s)`)
}

/** One alert, as a webhook receives it. */
function message() {
  const [id, created_at] = ['ab'.repeat(16), '2026-11-20T09:15:02Z']
  const subject = { kind: 'platform', id: newUuid(), name: 'Claude' }
  const details = { platform_type: 'chat', vendor: 'Anthropic', risk: 50, decision: 'waiting', matches: 41, clients: 3 }
  const title = 'New AI platform: Claude (Anthropic)'
  const organization = { id: newUuid(), name: 'Acme' }
  const alerts = [{ id, title, severity: 'low', created_at, subject, details }]
  const head = { version: 1, type: 'alerts', id, organization, rule: 'new-platform', severity: 'low' }
  return { ...head, title, created_at, count: 1, alerts }
}

async function loop(url: string, agent: Agent, body: string, count: number): Promise<void> {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  for (let at = 0; at < count; at++) {
    await new Promise<void>((resolve, reject) => {
      request(url, { method: 'POST', agent, headers })
        .once('response', (answer) => answer.resume().once('end', resolve))
        .once('error', reject)
        .end(body)
    })
  }
}
