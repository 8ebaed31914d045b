import { createServer, type IncomingHttpHeaders, type RequestListener, STATUS_CODES } from 'node:http'
import { join } from 'node:path'
import { Administration } from '../../engine/admin/administration.ts'
import { checkedChannel, type GivenChannel } from '../../engine/admin/alert-settings.ts'
import { sealedChannel } from '../../engine/admin/alerts.ts'
import { Deliveries, type DeliveryOptions } from '../../engine/alert/deliveries.ts'
import { AlertEvaluator } from '../../engine/alert/evaluator.ts'
import type { AlertFilter, AlertMessage } from '../../engine/alert/message.ts'
import { networkOf } from '../../engine/kernel/process/network.ts'
import { SecretsKey } from '../../engine/kernel/process/secrets-key.ts'
import { runScan } from '../../engine/scan/scan-runner.ts'
import type { AlertChannel } from '../../engine/store/alert-channels.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import { listenOn } from './free-port.ts'
import { makeOrganization, openStore, quietLog, registries, Sender, type TestStore } from './store.ts'

interface Test {
  testdir(): string
  teardown(work: () => unknown): void
}

const LOOPBACK = networkOf('127.0.0.0/8')

/** An organization whose alerts are evaluated and delivered step by step. */
export interface AlertSite extends TestStore {
  readonly organization: Organization
  readonly administration: Administration
  readonly evaluator: AlertEvaluator
  readonly deliveries: Deliveries
  readonly secrets: SecretsKey
  addChannel(given: GivenChannel, more?: Partial<AlertFilter> & { name?: string; of?: Organization }): AlertChannel
  /** Buffers one event for each name, and scans. */
  scan(names: readonly string[], of?: Organization): void
  /** Evaluates the rules. Returns how many alerts were raised, by rule. */
  evaluate(of?: Organization): Readonly<Record<string, number>>
  /** Sends what is due, and waits for the answers. */
  deliver(): Promise<void>
}

/** Every class of channel may connect to loopback unless `options` say otherwise. */
export function alertSite(t: Test, options: Partial<DeliveryOptions> = {}): AlertSite {
  const site = openStore(t)
  const { store, clock, directory } = site
  const organization = makeOrganization(site, 'Acme')
  const administration = new Administration(store, clock)
  const secrets = new SecretsKey(join(directory, 'secrets.key'))
  const evaluator = new AlertEvaluator(store, registries, clock)
  const allowed = LOOPBACK === undefined ? [] : [LOOPBACK]
  const deliveries = new Deliveries(store, clock, quietLog, {
    secrets,
    allowed,
    version: '1.2.3',
    random: () => 1,
    ...options,
  })
  t.teardown(() => deliveries.stop(0))
  const sender = new Sender()
  return {
    ...site,
    organization,
    administration,
    evaluator,
    deliveries,
    secrets,
    addChannel(given, { name = given.kind, of = organization, ...filter } = {}) {
      const checked = checkedChannel(given)
      if (checked.kind === 'invalid') throw new Error(JSON.stringify(checked.faults))
      const channel = sealedChannel(secrets, of, { severityMin: 'low', name, ...filter, settings: checked.settings })
      return administration.alerts.addChannel(of, channel)
    },
    scan(names, of = organization) {
      store.environment.write(() => {
        store.buffer.append(
          of.id,
          names.map((name) => sender.event(name, clock.nowMs())),
        )
      })
      runScan(store, registries, of.id, 'administrator', clock)
    },
    evaluate: (of = organization) => evaluator.evaluate(of.id).alerts,
    async deliver() {
      deliveries.poll()
      await deliveries.idle()
    },
  }
}

/**
 * Overdue recommendations. Returns what removes them: they are not published, which the check of
 * the store would find.
 */
export function overdueRecommendations(
  { store, organization, clock }: AlertSite,
  count: number,
  titleOf: (at: number) => string = (at) => `Do ${at}`,
): () => void {
  store.environment.write(() => {
    for (let at = 0; at < count; at++) {
      store.recommendations.put({
        id: `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`,
        organizationId: organization.id,
        frameworkId: 'hipaa',
        itemId: `I${at}`,
        title: titleOf(at),
        priority: 5,
        status: 'open',
        category: 'All',
        createdAtMs: clock.nowMs(),
        statusChangedAtMs: clock.nowMs(),
        owner: '',
        dueOn: '2020-01-31',
      })
    }
  })
  return () =>
    store.environment.write(() => {
      for (const each of store.recommendations.ofOrganization(organization.id)) store.recommendations.remove(each)
    })
}

export interface ReceivedPost {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly message: AlertMessage
}

/** A receiver of webhooks on loopback. */
export interface Receiver {
  readonly url: string
  readonly received: ReceivedPost[]
  /** Replaces how it answers: status, body and header fields, once `after` is resolved. */
  answer: (
    post: ReceivedPost,
  ) =>
    | { status: number; reason?: string; body?: string; headers?: Record<string, string>; after?: Promise<unknown> }
    | 'nothing'
}

export async function webhookReceiver(t: Test): Promise<Receiver> {
  const receiver: Receiver = { url: '', received: [], answer: () => ({ status: 204 }) }
  const listener: RequestListener = async (request, response) => {
    let body = ''
    try {
      for await (const part of request) body += String(part)
    } catch (error) {
      // A client that a test kills in the middle of a request resets its connection.
      if ((error as NodeJS.ErrnoException).code === 'ECONNRESET') return
      throw error
    }
    const message = JSON.parse(body) as AlertMessage
    const received = { path: request.url ?? '', headers: request.headers, body, message }
    receiver.received.push(received)
    const answer = receiver.answer(received)
    if (answer === 'nothing') return
    await answer.after
    const { status, reason = STATUS_CODES[status], headers, body: text } = answer
    response.writeHead(status, reason, headers).end(text)
  }
  const server = createServer(listener)
  return Object.assign(receiver, { url: `http://127.0.0.1:${await listenOn(t, server)}/alerts` })
}
