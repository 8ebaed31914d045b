import { createHmac } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import t from 'tap'
import { openSettings } from '../../../engine/alert/channel-settings.ts'
import { inTime } from '../../../engine/alert/send.ts'
import type { SendOutcome } from '../../../engine/alert/send-outcome.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../engine/kernel/process/clock.ts'
import { ALERT_DEAD_LETTERS_MAX, ALERT_MESSAGES_WAITING_MAX } from '../../../engine/limits.ts'
import {
  type AlertSite,
  alertSite,
  overdueRecommendations,
  type Receiver,
  webhookReceiver,
} from '../../support/alerts.ts'
import { listenOn } from '../../support/free-port.ts'
import { makeOrganization } from '../../support/store.ts'

/** Names of different platforms of the registry. */
const NAMES = ['claude.ai', 'chatgpt.com', 'gemini.google.com', 'perplexity.ai', 'copilot.microsoft.com'] as const

async function site(...given: Parameters<typeof alertSite>): Promise<AlertSite & { receiver: Receiver }> {
  const receiver = await webhookReceiver(given[0])
  const made = alertSite(...given)
  made.addChannel({ kind: 'webhook', url: receiver.url })
  return { ...made, receiver }
}

/** Scans one new platform, and evaluates. */
function raise(site: AlertSite, at: number, of = site.organization): void {
  site.scan([NAMES[at] ?? ''], of)
  site.evaluate(of)
}

function outcomes({ store, organization }: AlertSite): (string | undefined)[] {
  return store.alerts
    .newest(organization.id, 100)
    .flatMap(({ messages }) =>
      messages.map(([channelId, sequence]) => store.alertChannels.outcome(organization.id, channelId, sequence)),
    )
}

t.test('a webhook gets the alert with a valid signature, once', async (t) => {
  const { receiver, ...made } = await site(t)
  raise(made, 0)
  t.same(outcomes(made), ['waiting'])
  await made.deliver()
  await made.deliver()
  t.equal(receiver.received.length, 1)
  const [post] = receiver.received
  if (post === undefined) throw new Error('no post')
  const { headers, body, message } = post
  t.match(message, { version: 1, type: 'alerts', rule: 'new-platform', count: 1, organization: { name: 'Acme' } })
  t.match(message.alerts, [
    { id: made.store.alerts.newest(made.organization.id, 1)[0]?.id, subject: { name: 'Claude' } },
  ])
  const [channel] = made.store.alertChannels.ofOrganization(made.organization.id)
  const settings = channel && openSettings(made.secrets, channel)
  if (settings?.kind !== 'webhook') throw new Error('no webhook')
  const key = Buffer.from(settings.secret.slice('whsec_'.length), 'base64')
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  t.equal(headers['webhook-signature'], `v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
  t.equal(headers['webhook-id'], message.id)
  t.equal(headers['webhook-timestamp'], String(made.clock.nowMs() / 1000))
  t.equal(headers['user-agent'], 'posture-service/1.2.3')
  t.same(outcomes(made), ['delivered'])
})

t.test('after a failure, messages wait in order and are sent when the receiver works again', async (t) => {
  const { receiver, ...made } = await site(t)
  receiver.answer = () => ({ status: 503, body: 'try later' })
  const retried: number[] = []
  raise(made, 0)
  raise(made, 1)
  // The receiver is down for an hour.
  for (const endMs = made.clock.nowMs() + HOUR_MS; made.clock.nowMs() < endMs; made.clock.add(SECOND_MS)) {
    const before = receiver.received.length
    await made.deliver()
    if (receiver.received.length > before) retried.push(made.clock.nowMs())
  }
  t.same(outcomes(made), ['waiting', 'waiting'])
  t.ok(retried.length >= 12 && retried.length <= 25, `${retried.length} attempts in an hour, at most every 5 minutes`)
  t.same(new Set(receiver.received.map(({ message }) => message.alerts[0]?.subject.name)), new Set(['Claude']))
  const [channel] = made.store.alertChannels.ofOrganization(made.organization.id)
  const state = channel && made.store.alertChannels.state(made.organization.id, channel.id)
  t.match(state, { failedAttempts: retried.length, failure: '503 Service Unavailable: try later', delivered: 0 })
  receiver.answer = () => ({ status: 200 })
  receiver.received.length = 0
  made.clock.add(5 * MINUTE_MS)
  await made.deliver()
  t.same(
    receiver.received.map(({ message }) => message.alerts[0]?.subject.name),
    ['Claude', 'ChatGPT'],
  )
  t.same(outcomes(made), ['delivered', 'delivered'])
})

t.test('a message that was not delivered for 24 hours is a dead letter, which can be sent again', async (t) => {
  const { receiver, ...made } = await site(t)
  receiver.answer = () => ({ status: 500 })
  raise(made, 0)
  await made.deliver()
  made.clock.add(23 * HOUR_MS)
  await made.deliver()
  t.same(outcomes(made), ['waiting'])
  made.clock.add(HOUR_MS)
  await made.deliver()
  t.same(outcomes(made), ['dead'])
  receiver.answer = () => ({ status: 200 })
  receiver.received.length = 0
  t.equal(made.administration.alerts.retry(made.organization, 'webhook'), 1)
  t.same(outcomes(made), ['retried'])
  await made.deliver()
  t.equal(receiver.received.length, 1)
  t.equal(receiver.received[0]?.message.alerts[0]?.id, made.store.alerts.newest(made.organization.id, 1)[0]?.id)
})

t.test('the 24 hours count from the first attempt at each message, however long it waited before', async (t) => {
  const { receiver, ...made } = await site(t)
  receiver.answer = () => ({ status: 503 })
  raise(made, 0)
  raise(made, 1)
  // The service was stopped for two days.
  made.clock.add(48 * HOUR_MS)
  await made.deliver()
  t.same(outcomes(made), ['waiting', 'waiting'])
  made.clock.add(24 * HOUR_MS)
  await made.deliver()
  t.same(outcomes(made), ['waiting', 'dead'], 'the first one was tried for 24 hours, the second one once')
  receiver.answer = () => ({ status: 204 })
  made.clock.add(HOUR_MS)
  await made.deliver()
  t.same(outcomes(made), ['delivered', 'dead'])
})

t.test('a message that the receiver refuses blocks no later one', async (t) => {
  const { receiver, ...made } = await site(t)
  receiver.answer = ({ message }) => ({ status: message.alerts[0]?.subject.name === 'Claude' ? 422 : 200 })
  raise(made, 0)
  raise(made, 1)
  await made.deliver()
  t.same(outcomes(made), ['delivered', 'dead'])
  const [channel] = made.store.alertChannels.ofOrganization(made.organization.id)
  const [letter] = made.store.alertChannels.deadLetters(made.organization.id, channel?.id ?? '')
  t.match(letter, { attempts: 1, failure: '422 Unprocessable Entity' })
  t.equal(made.administration.alerts.discard(made.organization, 'WEBHOOK'), 1)
  t.same(outcomes(made), ['delivered', 'discarded'])
})

t.test('a receiver that requests a delay gets it', async (t) => {
  const { receiver, ...made } = await site(t)
  receiver.answer = () => ({ status: 429, headers: { 'retry-after': '600' } })
  raise(made, 0)
  await made.deliver()
  made.clock.add(9 * MINUTE_MS)
  await made.deliver()
  t.equal(receiver.received.length, 1)
  made.clock.add(MINUTE_MS)
  await made.deliver()
  t.equal(receiver.received.length, 2)
})

t.test('a redirect is not followed', async (t) => {
  const { receiver, ...made } = await site(t)
  receiver.answer = () => ({ status: 307, headers: { location: `${receiver.url}/other` } })
  raise(made, 0)
  await made.deliver()
  t.equal(receiver.received.length, 1)
  const [channel] = made.store.alertChannels.ofOrganization(made.organization.id)
  t.match(channel && made.store.alertChannels.state(made.organization.id, channel.id).failure, /not followed/)
})

t.test('a receiver that never answers delays no other channel', async (t) => {
  const slow = await webhookReceiver(t)
  slow.answer = () => 'nothing'
  const fast = await webhookReceiver(t)
  const made = alertSite(t, { attemptMs: 3000 })
  made.addChannel({ kind: 'webhook', url: slow.url }, { name: 'slow' })
  made.addChannel({ kind: 'webhook', url: fast.url }, { name: 'fast' })
  raise(made, 0)
  raise(made, 1)
  const order: string[] = []
  fast.answer = () => {
    order.push('fast')
    return { status: 200 }
  }
  const delivered = made.deliver().then(() => order.push('slow'))
  await delivered
  t.same(order, ['fast', 'fast', 'slow'])
  t.equal(slow.received.length, 1, 'in order: the second message waits')
})

t.test('the target of a channel must be public, or in a network that the operator allows', async (t) => {
  const receiver = await webhookReceiver(t)
  const made = alertSite(t, { allowed: [] })
  const channel = made.addChannel({ kind: 'webhook', url: receiver.url })
  raise(made, 0)
  await made.deliver()
  t.equal(receiver.received.length, 0)
  t.match(made.store.alertChannels.state(made.organization.id, channel.id).failure, /--outbound-networks/)
})

t.test('10,000 findings at once reach a webhook in numbered parts, and a chat as their number', async (t) => {
  const { receiver, ...made } = await site(t)
  const chat = await webhookReceiver(t)
  made.addChannel({ kind: 'slack', url: chat.url })
  const remove = overdueRecommendations(made, 10_000)
  t.same(made.evaluate(), { 'item-overdue': 10_000 })
  await made.deliver()
  const messages = receiver.received.map(({ message }) => message)
  t.equal(chat.received.length, 1)
  t.match(chat.received[0]?.body, /10000 items are overdue[^(]*and 9990 more/)
  t.equal(messages.length, 200)
  t.equal(new Set(messages.map(({ id }) => id)).size, 200)
  for (const [at, message] of messages.entries()) {
    const title = `10000 items are overdue (part ${at + 1} of 200)`
    t.match(message, { count: 10_000, part: at + 1, parts: 200, title })
  }
  t.same(
    messages.flatMap(({ alerts }) => alerts.map(({ id }) => id)),
    made.store.alerts
      .newest(made.organization.id, 10_000)
      .reverse()
      .map(({ id }) => id),
  )
  t.same(new Set(outcomes(made)), new Set(['delivered']))
  t.same(made.evaluate(), {})
  remove()
})

t.test('the alerts of two organizations are never mixed', async (t) => {
  const receiver = await webhookReceiver(t)
  const made = alertSite(t)
  const other = makeOrganization(made, 'Other')
  made.addChannel({ kind: 'webhook', url: `${receiver.url}/acme` })
  made.addChannel({ kind: 'webhook', url: `${receiver.url}/other` }, { of: other })
  raise(made, 0)
  raise(made, 1, other)
  await made.deliver()
  const got = receiver.received.map(({ path, message }) => [
    path,
    message.organization.name,
    message.alerts[0]?.subject.name,
  ])
  t.same(got.sort(), [
    ['/alerts/acme', 'Acme', 'Claude'],
    ['/alerts/other', 'Other', 'ChatGPT'],
  ])
})

t.test('a channel gets alerts of its severity and above', async (t) => {
  const { receiver, ...made } = await site(t)
  made.addChannel({ kind: 'webhook', url: `${receiver.url}/high` }, { name: 'high', severityMin: 'high' })
  raise(made, 0)
  await made.deliver()
  t.same(
    receiver.received.map(({ path }) => path),
    ['/alerts'],
  )
})

t.test('beyond the limit the oldest message becomes a dead letter', async (t) => {
  const made = alertSite(t)
  const { store, organization, clock } = made
  const { id } = made.addChannel({ kind: 'webhook', url: 'http://127.0.0.1:9/' })
  store.environment.write(() => {
    for (let at = 0; at < ALERT_MESSAGES_WAITING_MAX + 300; at++) {
      store.alertChannels.append(organization.id, id, '{}', clock.nowMs())
    }
  })
  t.equal(store.alertChannels.waiting(organization.id, id), ALERT_MESSAGES_WAITING_MAX)
  t.equal(store.alertChannels.deadLetterCount(organization.id, id), 300)
  t.match(store.alertChannels.state(organization.id, id), { deadLetters: 300, dropped: 0 })
  t.ok(ALERT_DEAD_LETTERS_MAX >= ALERT_MESSAGES_WAITING_MAX, 'all messages of a full queue can become dead letters')
  store.environment.write(() => {
    for (let at = 0; at < ALERT_DEAD_LETTERS_MAX; at++) {
      store.alertChannels.append(organization.id, id, '{}', clock.nowMs())
    }
  })
  t.equal(store.alertChannels.deadLetterCount(organization.id, id), ALERT_DEAD_LETTERS_MAX)
  t.match(store.alertChannels.state(organization.id, id), { dropped: 300 })
})

t.test('a channel that is removed gets nothing more', async (t) => {
  const { receiver, ...made } = await site(t)
  raise(made, 0)
  made.administration.alerts.removeChannel(made.organization, 'webhook')
  await made.deliver()
  t.equal(receiver.received.length, 0)
})

t.test('an organization that is removed gets nothing more, whatever waits', async (t) => {
  const { receiver, ...made } = await site(t)
  const { store, organization, administration, clock } = made
  receiver.answer = () => ({ status: 503 })
  raise(made, 0)
  raise(made, 1)
  await made.deliver()
  t.equal(receiver.received.length, 1)
  // The first message is being sent while the organization is removed; the second one waits.
  clock.add(HOUR_MS)
  receiver.answer = () => {
    administration.organizations.remove(organization, () => {})
    return { status: 204 }
  }
  await made.deliver()
  t.equal(receiver.received.length, 2)
  receiver.answer = () => ({ status: 204 })
  for (const removal of store.removals.all()) for (const _step of store.removals.finish(removal));
  clock.add(HOUR_MS)
  await made.deliver()
  made.evaluate()
  await made.deliver()
  t.equal(receiver.received.length, 2)
  t.same([...store.alertChannels.all()], [], 'no record is left or appears again')
})

for (const { status, after, delivered, failure } of [
  { status: 200, after: 'begun', delivered: 1, failure: '' },
  { status: 204, after: 'begun', delivered: 1, failure: '' },
  { status: 200, after: 'reset', delivered: 1, failure: '' },
  { status: 500, after: 'begun', delivered: 0, failure: '500 Internal Server Error: begun' },
] as const) {
  t.test(
    `the status ${status} decides, even if the body never ends or the connection is lost (${after})`,
    async (t) => {
      let posts = 0
      const server = createTcpServer((socket) => {
        socket.on('error', () => {})
        socket.once('data', () => {
          posts++
          const phrase = STATUS_CODES[status]
          socket.write(`HTTP/1.1 ${status} ${phrase}\r\ncontent-length: 1000\r\n\r\nbegun`, () => {
            if (after === 'reset') socket.resetAndDestroy()
          })
        })
        t.teardown(() => socket.destroy())
      })
      const port = await listenOn(t, server)
      // The attempt ends while the body is being read.
      const made = alertSite(t, { attemptMs: 900 })
      const channel = made.addChannel({ kind: 'webhook', url: `http://127.0.0.1:${port}/` })
      raise(made, 0)
      await made.deliver()
      made.clock.add(HOUR_MS)
      if (delivered > 0) await made.deliver()
      t.match(made.store.alertChannels.state(made.organization.id, channel.id), { delivered, failure })
      t.equal(posts, 1)
    },
  )
}

t.test('an attempt ends in time if the receiver never answers', async (t) => {
  const { receiver, ...made } = await site(t, { attemptMs: 200 })
  receiver.answer = () => 'nothing'
  raise(made, 0)
  await made.deliver()
  const [channel] = made.store.alertChannels.ofOrganization(made.organization.id)
  t.match(made.store.alertChannels.state(made.organization.id, channel?.id ?? ''), {
    attempts: 1,
    failure: 'no answer in time',
  })
})

t.test('an attempt that cannot be aborted ends in time, and at once when the service stops', async (t) => {
  const never = (): Promise<SendOutcome> => new Promise(() => {})
  const late = { kind: 'retry', why: 'no answer in time' }
  const running = new AbortController()
  t.same(await inTime({ timeoutMs: 1, signal: running.signal }, never), late)
  let inner: AbortSignal | undefined
  const stopped = inTime({ timeoutMs: 3_600_000, signal: running.signal }, (signal) => {
    inner = signal
    return never()
  })
  running.abort()
  t.same(await stopped, late)
  t.equal(inner?.aborted, true)
  t.same(await inTime({ timeoutMs: 3_600_000, signal: running.signal }, never), late, 'aborted before')
  const other = new AbortController()
  const delivered = { kind: 'delivered', answer: '204' } as const
  t.same(await inTime({ timeoutMs: 3_600_000, signal: other.signal }, async () => delivered), delivered)
  const failing = inTime({ timeoutMs: 3_600_000, signal: other.signal }, () => Promise.reject(new TypeError('wrong')))
  await t.rejects(failing, { message: 'wrong' })
})

t.test('an attempt that a stop aborts is not a failure of the receiver', async (t) => {
  const { receiver, ...made } = await site(t)
  const { store, organization, deliveries } = made
  const arrived = new Promise<void>((resolve) => {
    receiver.answer = () => {
      resolve()
      return 'nothing'
    }
  })
  raise(made, 0)
  const delivering = made.deliver()
  await arrived
  await deliveries.stop(0)
  await delivering
  const [channel] = store.alertChannels.ofOrganization(organization.id)
  t.match(store.alertChannels.state(organization.id, channel?.id ?? ''), { attempts: 0, failedAttempts: 0 })
  t.same(outcomes(made), ['waiting'])
})
