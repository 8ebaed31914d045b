import { join } from 'node:path'
import type { Test } from 'tap'
import { Administration } from '../../engine/admin/administration.ts'
import { provideCertificate } from '../../engine/http/certificate.ts'
import { EventAcceptor } from '../../engine/ingest/accept.ts'
import { HttpLogs } from '../../engine/ingest/http-logs.ts'
import { eventsHandler } from '../../engine/ingest/https-batches.ts'
import { IngestAccounting, storeSink } from '../../engine/ingest/ingest-accounting.ts'
import { makeTokenRateTable, TokenRate } from '../../engine/ingest/rates.ts'
import { SyslogIngest } from '../../engine/ingest/syslog-ingest.ts'
import { systemClock } from '../../engine/kernel/process/clock.ts'
import { RegistryInForce } from '../../engine/store/registry-in-force.ts'
import { serve } from './https.ts'
import { makeOrganization, openStore, quietLog } from './store.ts'
import { rfc5424, squid } from './syslog-service.ts'

/** A distinct client for each message, so that no messages are merged. */
export function clientOf(index: number): string {
  return `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`
}

export function messagesOf(token: string, from: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => rfc5424(token, squid('claude.ai', clientOf(from + index))))
}

interface IngestSiteOptions {
  readonly bufferedEventsMax: number
  readonly laneThreads: number
  /** Messages of a token per second; 0: no limit. */
  readonly tokenRateMax?: number
  readonly log?: typeof quietLog
  /** For tests that damage records. */
  readonly unchecked?: boolean
}

/** All listeners of ingest in this process, with two organizations. */
export async function ingestSite(t: Test, options: IngestSiteOptions) {
  const { bufferedEventsMax, laneThreads, tokenRateMax = 0, log = quietLog, unchecked = false } = options
  const opened = openStore(t, { unchecked })
  const { store } = opened
  const administration = new Administration(store, systemClock)
  const acceptor = new EventAcceptor(store, systemClock, quietLog, () => {}, bufferedEventsMax)
  const accounting = new IngestAccounting(storeSink(store), quietLog)
  const endpoint = { address: '127.0.0.1', port: 0 }
  const tokenRateTable = makeTokenRateTable()
  const known = new RegistryInForce(store)
  const certificate = await provideCertificate(join(opened.directory, 'syslog'), undefined)
  const syslog = await SyslogIngest.start(
    {
      dataDirectory: opened.directory,
      endpoints: [
        { kind: 'tls', setting: '--syslog-tls', ...endpoint },
        { kind: 'tcp', setting: '--syslog-tcp', ...endpoint },
        { kind: 'udp', setting: '--syslog-udp', ...endpoint },
        { kind: 'tcp', dnstap: true, setting: '--dnstap-tcp', ...endpoint },
      ],
      tls: certificate,
      proxyProtocol: false,
      connectionsMax: 1000,
      connectionsPerAddressMax: 0,
      idleMs: 60_000,
      tokenRateTable,
      tokenRateMax,
      laneThreads,
      registry: known.compiled,
      logLevel: 'ERROR',
    },
    acceptor,
    accounting,
    log,
    (error) => t.fail(error.message),
  )
  accounting.start()
  const tokenRate = tokenRateMax === 0 ? undefined : new TokenRate(tokenRateTable, tokenRateMax)
  const httpLogs = new HttpLogs({ store, known, acceptor, accounting, tokenRate })
  const counters = { batches: 0, unauthorized: 0, malformed: 0, overloaded: 0 }
  const handler = eventsHandler(store, acceptor, counters, { sources: accounting.sources, logs: httpLogs })
  const https = await serve(t, 'node', join(opened.directory, 'https'), handler)
  const [acme, other] = (['Acme', 'Other'] as const).map((name) => {
    const organization = makeOrganization({ ...opened, clock: { ...opened.clock, nowMs: Date.now } }, name)
    const { raw, record } = administration.tokens.generate(organization, 'devices')
    return { id: organization.id, organization, token: raw, tokenId: record.id }
  })
  if (acme === undefined || other === undefined) throw new Error('two organizations')
  const port = (kind: string, dnstap?: true): number =>
    syslog.endpoints.find((one) => one.kind === kind && one.dnstap === dnstap)?.port ?? 0
  t.teardown(async () => {
    httpLogs.stop()
    await syslog.drain(1000)
    await accounting.stop()
  })
  const { certificateFile } = certificate
  return { store, administration, syslog, httpLogs, https, acme, other, port, accounting, certificateFile }
}
