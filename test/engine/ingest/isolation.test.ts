import t, { type Test } from 'tap'
import { LOGS_PATH } from '../../../engine/ingest/https-batches.ts'
import { packBatch } from '../../../engine/kernel/event/event.ts'
import { Control, controlFrame, dataFrame, dnstapMessage } from '../../support/dnstap.ts'
import { clientOf, ingestSite, messagesOf } from '../../support/ingest-site.ts'
import { Sender as EventSender } from '../../support/store.ts'
import { sendTcp, sendTls, sendUdp } from '../../support/syslog-sender.ts'
import { squid } from '../../support/syslog-service.ts'
import { until } from '../../support/wait.ts'

/** Whatever is wrong with one organization, others do not notice, by any transport. */

type Site = Awaited<ReturnType<typeof ingestSite>>
/** Of an organization; `from` makes clients distinct, so that no messages are merged. */
type Send = (t: Test, site: Site, who: Site['acme'], from: number, count: number) => Promise<number | undefined>

const BUFFERED_MAX = 100
const PER_SECOND = 60

const post = async ({ https }: Site, token: string, path: string, type: string, body: Uint8Array | string) => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': type }
  return (await https.ask(path, { method: 'POST', headers, body })).status
}
const logLines = (from: number, count: number): string =>
  Array.from({ length: count }, (_, index) => squid('claude.ai', clientOf(from + index))).join('\n')
const addressOf = (site: Site, who: Site['acme']): string => (who === site.acme ? '127.0.0.2' : '127.0.0.3')
const events = new EventSender()

/** Each returns the status of the request, if it is one. */
const TRANSPORTS: Readonly<Record<string, Send>> = {
  'HTTPS batches': async (_t, site, { token }, _from, count) => {
    const batch = packBatch(Array.from({ length: count }, () => events.event('claude.ai', Date.now())))
    return post(site, token, '/ingest/v1/events', 'application/msgpack', batch)
  },
  'HTTPS logs': async (_t, site, { token }, from, count) =>
    post(site, token, LOGS_PATH, 'text/plain', logLines(from, count)),
  'syslog over TLS': async (t, site, { token }, from, count) => {
    const sender = await sendTls(t, site.port('tls'), { caFile: site.certificateFile })
    sender.send(`${messagesOf(token, from, count).join('\n')}\n`)
    return undefined
  },
  'syslog over TCP': async (t, site, { token }, from, count) => {
    const sender = await sendTcp(t, site.port('tcp'))
    sender.send(`${messagesOf(token, from, count).join('\n')}\n`)
    return undefined
  },
  'syslog over UDP': async (_t, site, { token }, from, count) => {
    await sendUdp(site.port('udp'), messagesOf(token, from, count))
    return undefined
  },
  dnstap: async (t, site, who, from, count) => {
    const sender = await sendTcp(t, site.port('tcp', true), { localAddress: addressOf(site, who) })
    const frames = Array.from({ length: count }, (_, index) =>
      dataFrame(dnstapMessage('claude.ai', { client: clientOf(from + index) })),
    )
    sender.send(Buffer.concat([controlFrame(Control.start), ...frames]))
    return undefined
  },
}

interface Trouble {
  readonly cause: (site: Site) => unknown
  /** Its messages by each transport. */
  readonly sent: number
  /** The status of its requests. undefined: they wait. */
  readonly batches: number
  readonly logs: number | undefined
}

const TROUBLES: Readonly<Record<string, Trouble>> = {
  'its buffer is full': {
    cause: (site) => post(site, site.acme.token, LOGS_PATH, 'text/plain', logLines(1 << 19, BUFFERED_MAX - 1)),
    ...{ sent: 50, batches: 503, logs: undefined },
  },
  'one of its records is damaged': {
    cause: ({ store: { environment }, acme }) => {
      const key = Buffer.from(`${acme.id.replaceAll('-', '')}${'ff'.repeat(8)}`, 'hex')
      environment.write(() => environment.table('buffer').putSync(key, Buffer.from('not what was written')))
    },
    ...{ sent: 50, batches: 503, logs: 503 },
  },
  'it is removed': {
    cause: ({ administration, acme }) => administration.organizations.remove(acme.organization, () => {}),
    ...{ sent: 50, batches: 401, logs: 401 },
  },
  'its token is over its rate': {
    cause: () => {},
    ...{ sent: 4 * PER_SECOND, batches: 503, logs: undefined },
  },
}
const OF_OTHER = 3

for (const [name, { cause, sent, batches, logs }] of Object.entries(TROUBLES)) {
  t.test(`another organization does not notice that ${name}`, async (t) => {
    const site = await ingestSite(t, {
      ...{ bufferedEventsMax: BUFFERED_MAX, laneThreads: 1, tokenRateMax: PER_SECOND, unchecked: true },
    })
    const { store, syslog, administration, httpLogs, acme, other } = site
    for (const who of [acme, other])
      administration.tokens.bind(who.organization, who.tokenId, [{ network: addressOf(site, who), port: 0 }])
    await cause(site)
    const answers = Object.entries(TRANSPORTS).map(async ([transport, send], index) => [
      transport,
      await send(t, site, acme, index << 10, sent),
    ])
    await until('its messages arrive', async () => {
      const { received } = await syslog.status()
      return received.tls + received.tcp + received.udp > 0 || undefined
    })
    for (const [index, [transport, send]] of Object.entries(TRANSPORTS).entries()) {
      const status = await send(t, site, other, (1 << 20) + (index << 10), OF_OTHER)
      t.ok(status === undefined || status === 200, `${transport}: ${status}`)
      const stored = (index + 1) * OF_OTHER
      await until(`stored by ${transport}`, () => store.buffer.count(other.id) === stored || undefined)
    }
    httpLogs.stop()
    const statuses = Object.fromEntries(await Promise.all(answers))
    t.match(statuses, { 'HTTPS batches': batches, 'HTTPS logs': logs ?? 503 })
    t.equal(await TRANSPORTS['HTTPS logs']?.(t, site, other, 0, 1), 503, 'the service is stopping')
  })
}
