import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Console } from '../console/console.ts'
import { type IngestListeners, listenersOf } from '../console/ingest-listeners.ts'
import { offerSetupLink } from '../console/setup-offer.ts'
import { provisionRegistry } from '../engine/admin/own-platforms.ts'
import { makeAnswerCounters } from '../engine/http/answer-counters.ts'
import { type Certificate, provideCertificate, type TlsFiles } from '../engine/http/certificate.ts'
import { CertificateWatch } from '../engine/http/certificate-watch.ts'
import { type ConnectionLimits, connectionCountersOf, makeConnectionCounters } from '../engine/http/connections.ts'
import { claimPort, listenHttp, originOf, wildcardAddress } from '../engine/http/listen.ts'
import {
  drainThread,
  faultOf,
  listening,
  type ThreadListening,
  type ToListenerThread,
} from '../engine/http/listener-thread.ts'
import type { HttpHandler, HttpListener } from '../engine/http/port.ts'
import { type BatchWriter, EventAcceptor } from '../engine/ingest/accept.ts'
import { HttpLogs } from '../engine/ingest/http-logs.ts'
import { eventsHandler } from '../engine/ingest/https-batches.ts'
import { IngestAccounting, storeSink } from '../engine/ingest/ingest-accounting.ts'
import { addKeyUses } from '../engine/ingest/node-counters.ts'
import { makeTokenRateTable, TokenRate } from '../engine/ingest/rates.ts'
import type { BatchCounters } from '../engine/ingest/request-body.ts'
import { SyslogIngest, type SyslogOptions } from '../engine/ingest/syslog-ingest.ts'
import type { SyslogEndpoint } from '../engine/ingest/thread-protocol.ts'
import { CertificateExpiry, type CertificateFile } from '../engine/kernel/process/certificate-expiry.ts'
import { systemClock } from '../engine/kernel/process/clock.ts'
import type { deferredFailure } from '../engine/kernel/process/deferred.ts'
import { connectionsWithin } from '../engine/kernel/process/descriptors.ts'
import type { Release } from '../engine/kernel/process/exclusive.ts'
import { logFailure } from '../engine/kernel/process/failure.ts'
import { LocalServer } from '../engine/kernel/process/local-server.ts'
import { type Logger, setLogLevel } from '../engine/kernel/process/log.ts'
import { type MetricRow, Metrics } from '../engine/kernel/process/metrics.ts'
import { SecretsKey, secretsKeyFile } from '../engine/kernel/process/secrets-key.ts'
import { changedSettings, type ListenAddress } from '../engine/kernel/process/settings.ts'
import { keepSharedSettings } from '../engine/kernel/process/shared-settings.ts'
import { within } from '../engine/kernel/process/signals.ts'
import { SYSLOG_CONNECTIONS_MAX, SYSLOG_IDLE_MS } from '../engine/limits.ts'
import { ScanSchedule } from '../engine/scan/schedule.ts'
import { DailyRetention } from '../engine/store/daily-retention.ts'
import { SERVICE_WIDE } from '../engine/store/own-platforms.ts'
import { RegistryInForce } from '../engine/store/registry-in-force.ts'
import type { KeyUse } from '../engine/store/secrets.ts'
import type { Store } from '../engine/store/store.ts'
import { expiryProblem } from '../registry/signed-release.ts'
import { BackgroundThread } from './background-thread.ts'
import type { Cluster } from './cluster.ts'
import { SALES_EMAIL_EXAMPLE, type ServiceSettings, serviceSettings } from './config.ts'
import { Health } from './health.ts'
import { KeyUseWriter } from './key-uses.ts'
import { KeyWatch } from './key-watch.ts'
import type { OpenedStore } from './open-store.ts'
import { openApiAnswer } from './openapi.ts'
import { OrganizationMetrics } from './organization-metrics.ts'
import { persistRates, resumeRates } from './rate-limit/persisted-rates.ts'
import { makeRateTable } from './rate-limit/rate-limit.ts'
import { ROUTES } from './routes.ts'
import { serviceRows } from './service-metrics.ts'
import type { ApiThreadData, FromApiThread } from './thread.ts'

/** For the message of a failure. */
const API_THREAD = 'an API thread'
/** Size of the young generation in the heap of an API thread. */
const YOUNG_GENERATION_MB = 16

/**
 * Shares of the file descriptors for the connections of each kind of listener. The rest is for the
 * store, logs and local connections.
 */
const API_DESCRIPTORS_SHARE = 0.3
const CONSOLE_DESCRIPTORS_SHARE = 0.1
const INGEST_DESCRIPTORS_SHARE = 0.2
const SYSLOG_DESCRIPTORS_SHARE = 0.3

/** Wires the stages of the service: ingest, scans and API threads, over one store. */
export class Service {
  #settings: ServiceSettings
  readonly #log: Logger
  readonly #store: Store
  readonly #background: BackgroundThread
  readonly #schedule: ScanSchedule
  readonly #acceptor: EventAcceptor
  readonly #cluster: Cluster | undefined
  readonly #batches: BatchCounters = { batches: 0, unauthorized: 0, malformed: 0, overloaded: 0 }
  readonly #accounting: IngestAccounting
  readonly #keyUses: KeyUseWriter
  readonly #registry: RegistryInForce
  readonly #keys: KeyWatch
  readonly #certificates: CertificateExpiry
  readonly #health: Health
  readonly #retention: DailyRetention
  readonly #metrics = new Metrics()
  readonly #organizationMetrics: OrganizationMetrics
  #ingest: HttpListener | undefined
  #httpLogs: HttpLogs | undefined
  #syslog: SyslogIngest | undefined
  #local: LocalServer | undefined
  #console: Console | undefined
  #certificate: TlsFiles | undefined
  #certificateWatch: CertificateWatch | undefined
  readonly #threads: Worker[] = []
  readonly #apiCounters: SharedArrayBuffer
  readonly #connections: Readonly<Record<'api' | 'console' | 'ingest', SharedArrayBuffer>>
  readonly #tokenRateTable = makeTokenRateTable()
  readonly #rateTables = { keys: makeRateTable(), addresses: makeRateTable() }
  /** The API has listened, so that the counts of the rate limit are its own. */
  #hasServed = false
  readonly #releaseScans: Release
  readonly #failure: ReturnType<typeof deferredFailure>
  /** Rejects when an essential part of the service ends unexpectedly. */
  readonly failure: Promise<never>

  constructor(settings: ServiceSettings, log: Logger, { store, cluster, releaseScans, failure }: OpenedStore) {
    this.#settings = settings
    this.#cluster = cluster
    this.#releaseScans = releaseScans
    this.#failure = failure
    this.failure = failure.promise
    this.#apiCounters = makeAnswerCounters(settings.apiThreads)
    this.#connections = {
      api: makeConnectionCounters(settings.apiThreads),
      console: makeConnectionCounters(1),
      ingest: makeConnectionCounters(1),
    }
    this.#log = log
    this.#store = store
    if (cluster === undefined) provisionRegistry(store, settings.registry, systemClock, log)
    this.#registry = new RegistryInForce(this.#store)
    const { platforms, rules } = this.#registry.catalogOf(SERVICE_WIDE)
    log.info({ platforms: platforms.length, domains: rules.length }, 'registry loaded')
    if (settings.salesEmail === SALES_EMAIL_EXAMPLE) {
      log.warn('SALES_EMAIL is not set: API errors about the plan name a contact that does not exist')
    }
    this.#accounting = new IngestAccounting(cluster?.counterSink ?? storeSink(store), log)
    const writeUses = (uses: readonly KeyUse[]): void => store.environment.write(() => addKeyUses(store, uses))
    this.#keyUses = new KeyUseWriter(cluster?.keyUseSink ?? writeUses, log)
    this.#background = new BackgroundThread(settings.dataDir, settings.secretsKeyFile, log)
    this.#schedule = new ScanSchedule(this.#store, this.#registry, systemClock, log, this.#background)
    this.#acceptor = new EventAcceptor(this.#store, systemClock, log, (organizationId) =>
      this.#schedule.noteBuffered(organizationId),
    )
    this.#certificates = new CertificateExpiry(() => this.#certificateFiles(), log)
    const keyFile = secretsKeyFile(settings.secretsKeyFile, settings.dataDir)
    this.#keys = new KeyWatch(store, new SecretsKey(keyFile), log)
    this.#health = new Health(this.#store.environment, this.#schedule, log, cluster, undefined, () => [
      ...registryProblem(store),
      ...this.#certificates.expired(),
      ...this.#keys.problems,
    ])
    this.#retention = new DailyRetention(this.#store, systemClock, log)
    this.#organizationMetrics = new OrganizationMetrics(this.#store, settings.organizationMetrics)
  }

  /**
   * Opens the ports, then starts the scans.
   *
   * @throws Fault PORT_TAKEN, PORT_DENIED, CERTIFICATE
   */
  async start(): Promise<Listening> {
    const settings = this.#settings
    const claimApiPort = () => claimPort('--api-port', settings.apiAddress, settings.apiPort)
    // Before anything is written, so that a second service on the same port changes nothing.
    await claimApiPort()
    const certificate = this.#needsCertificate() ? await this.#provideCertificate(settings) : undefined
    const tls = certificate && { keyFile: certificate.keyFile, certificateFile: certificate.certificateFile }
    const httpTls = settings.plainHttp ? undefined : tls
    const ingestPort = await this.#startIngest(httpTls)
    const syslog = await this.#startSyslog(tls)
    resumeRates(settings.dataDir, Object.values(this.#rateTables), this.#log)
    // Again, because meanwhile another program can have taken a free port that the system chose.
    const apiPort = await claimApiPort()
    const api = settings.roles.includes('api') ? await this.#startApi(apiPort, httpTls) : undefined
    if (api !== undefined) this.#cluster?.startRate(this.#rateTables.keys)
    this.#hasServed = true
    const lead = async (): Promise<number | undefined> => {
      this.#keys.create()
      keepSharedSettings(settings.dataDir, this.#settings, this.#log)
      // First, because it ends the scans that the last process began.
      this.#schedule.start()
      this.#background.startAlerts(this.#store, () => this.#settings)
      this.#retention.start()
      return this.#startConsole(httpTls, listenersOf(ingestPort, syslog, tls))
    }
    const consolePort = this.#cluster === undefined ? await lead() : undefined
    // Last, because a client may take an answer here as a sign that the service is ready.
    const metricsPort = await this.#startLocal()
    this.#accounting.start()
    this.#keys.start()
    this.#health.start()
    this.#cluster?.start(this.#acceptor, async () => {
      provisionRegistry(this.#store, this.#settings.registry, systemClock, this.#log)
      await lead()
    })
    if (certificate !== undefined) {
      this.#watchCertificate(certificate)
    }
    const url = `${originOf(httpTls, settings.apiAddress, apiPort)}/api/v1`
    if (api !== undefined) this.#log.info({ url, ...api }, 'API listens')
    return { apiPort, consolePort, ingestPort, metricsPort, syslog, fingerprint: certificate?.fingerprint }
  }

  /** Waits up to `deadlineMs` for work in progress to end, and closes the store. */
  async drain(deadlineMs: number): Promise<void> {
    this.#certificateWatch?.stop()
    this.#httpLogs?.stop()
    this.#certificates.stop()
    this.#keys.stop()
    await this.#cluster?.stopWatching()
    const drained = [
      this.#schedule.stop(),
      this.#retention.stop(),
      this.#ingest?.drain(deadlineMs),
      this.#syslog?.drain(deadlineMs),
      this.#local?.close(),
      this.#console?.drain(deadlineMs),
      ...this.#threads.map((thread) => drainThread(thread, deadlineMs)),
    ]
    // One part that fails must not leave the process running with the others stopped.
    const ended = drained.map((part) =>
      Promise.resolve(part).catch((err) => this.#log.error({ err }, 'internal error')),
    )
    if (!(await within(deadlineMs + 1000, Promise.all(ended)))) this.#log.warn('some connections were aborted')
    await this.#accounting.stop()
    await this.#cluster?.stop()
    this.#metrics.close()
    if (this.#hasServed) persistRates(this.#settings.dataDir, Object.values(this.#rateTables), this.#log)
    this.#health.stop()
    this.#log.info({ ...this.#acceptor.counters, ...this.#batches }, 'stopped')
    await this.#store.close()
    await this.#releaseScans()
  }

  async #startIngest(tls: TlsFiles | undefined): Promise<number | undefined> {
    const { ingestAddress: address, ingestPort, http } = this.#settings
    if (ingestPort === 'off' || !this.#settings.roles.includes('ingest')) return undefined
    const port = await claimPort('--ingest-port', address, ingestPort)
    this.#ingest = await listenHttp(http, {
      address,
      port,
      ...(tls ? { tls } : {}),
      limits: this.#connectionLimits(INGEST_DESCRIPTORS_SHARE),
      connectionCounters: connectionCountersOf(this.#connections.ingest),
      handler: this.#ingestHandler(),
      log: this.#log,
    })
    const { implementation } = this.#ingest
    this.#log.info({ url: originOf(tls, address, port), implementation }, 'ingest listens')
    return port
  }

  /** @param share of the file descriptors. */
  #connectionLimits(share: number): ConnectionLimits {
    return { connectionsMax: connectionsWithin(share), perClientMax: this.#settings.maxConnectionsPerAddress }
  }

  #ingestHandler(): HttpHandler {
    const [store, acceptor, accounting] = [this.#store, this.#writer, this.#accounting]
    const { httpLogs, tokenRate: perSecond } = this.#settings
    const tokenRate = perSecond === 0 ? undefined : new TokenRate(this.#tokenRateTable, perSecond)
    if (httpLogs) this.#httpLogs = new HttpLogs({ store, known: this.#registry, acceptor, accounting, tokenRate })
    return eventsHandler(store, acceptor, this.#batches, { sources: accounting.sources, logs: this.#httpLogs })
  }

  /** Where the listeners put batches. */
  get #writer(): BatchWriter {
    return this.#cluster?.writer ?? this.#acceptor
  }

  async #startSyslog(tls: TlsFiles | undefined): Promise<readonly SyslogEndpoint[]> {
    const { dataDir, logLevel, proxyProtocol, tokenRate } = this.#settings
    const endpoints = syslogEndpoints(this.#settings)
    if (endpoints.length === 0 || !this.#settings.roles.includes('ingest')) return []
    const options: SyslogOptions = {
      dataDirectory: dataDir,
      endpoints,
      tls,
      proxyProtocol,
      idleMs: SYSLOG_IDLE_MS,
      tokenRateMax: tokenRate,
      tokenRateTable: this.#tokenRateTable,
      connectionsMax: Math.min(SYSLOG_CONNECTIONS_MAX, connectionsWithin(SYSLOG_DESCRIPTORS_SHARE)),
      connectionsPerAddressMax: this.#settings.maxConnectionsPerAddress,
      laneThreads: this.#settings.ingestThreads,
      registry: this.#registry.compiled,
      logLevel,
    }
    this.#syslog = await SyslogIngest.start(options, this.#writer, this.#accounting, this.#log, this.#failure.reject)
    return this.#syslog.endpoints
  }

  async #startConsole(tls: TlsFiles | undefined, ingest: IngestListeners): Promise<number | undefined> {
    const {
      apiAddress: address,
      consolePort,
      consoleOrigin,
      dataDir,
      http,
      hsts,
      logLevel,
      outboundNetworks,
    } = this.#settings
    if (consolePort === 'off' || !this.#settings.roles.includes('console')) return undefined
    const port = await claimPort('--console-port', address, consolePort)
    const data = {
      ...{ dataDirectory: dataDir, address, port, tls, http, hsts, logLevel, ingest, outboundNetworks },
      origin: consoleOrigin,
      secretsKeyFile: secretsKeyFile(this.#settings.secretsKeyFile, dataDir),
      limits: this.#connectionLimits(CONSOLE_DESCRIPTORS_SHARE),
      ...{ connections: this.#connections.console, staleness: this.#cluster?.shared.staleness },
    }
    this.#console = await Console.start(data, this.#store, this.#log, this.#failure.reject)
    const url = consoleOrigin === '' ? originOf(tls, address, port) : consoleOrigin
    this.#log.info({ url, implementation: this.#console.implementation }, 'console listens')
    offerSetupLink(this.#store, url, dataDir, this.#log)
    return port
  }

  async #startLocal(): Promise<number | undefined> {
    const { metricsAddress, metricsPort, tlsNames } = this.#settings
    if (metricsPort === 'off') return undefined
    const answers = {
      '/healthz': () => this.#health.answer(),
      '/livez': () => this.#health.live(),
      '/readyz': () => this.#health.ready(),
      '/primary': () => this.#health.primary(),
      '/metrics': async () => this.#metrics.render(await this.#metricRows()),
    }
    this.#local = await LocalServer.listen('--metrics-port', metricsPort, answers, this.#log, metricsAddress, tlsNames)
    const url = `${originOf(undefined, metricsAddress, this.#local.port)}/metrics`
    this.#log.info({ url }, 'metrics listen')
    return this.#local.port
  }

  #metricRows(): Promise<MetricRow[]> {
    return serviceRows({
      ...{ health: this.#health, certificates: this.#certificates },
      acceptor: this.#acceptor,
      cluster: this.#cluster,
      batches: this.#batches,
      accounting: this.#accounting,
      ...{ syslog: this.#syslog, httpLogs: this.#httpLogs },
      schedule: this.#schedule,
      background: this.#background,
      apiCounters: this.#apiCounters,
      rateTables: this.#rateTables,
      connections: this.#connections,
      console: this.#console,
      organizations: this.#organizationMetrics,
    })
  }

  #needsCertificate(): boolean {
    const { plainHttp, syslogTls, dnstapTls } = this.#settings
    return !plainHttp || syslogTls.length > 0 || dnstapTls.length > 0
  }

  /**
   * Uses new settings as far as that is possible without a restart: certificate, log level,
   * outbound networks and REGISTRY_FILE. After an error the old ones stay in use. Never throws.
   */
  async reload(settingsNow: () => ServiceSettings): Promise<void> {
    try {
      const settings = settingsNow()
      const certificate = this.#needsCertificate()
        ? await this.#provideCertificate({ ...settings, dataDir: this.#settings.dataDir })
        : undefined
      const { logLevel, registry, outboundNetworks, tlsKey, tlsCertificate, tlsNames } = settings
      this.#settings = { ...this.#settings, logLevel, registry, outboundNetworks, tlsKey, tlsCertificate, tlsNames }
      keepSharedSettings(this.#settings.dataDir, this.#settings, this.#log)
      setLogLevel(this.#log, logLevel)
      if (this.#cluster?.isPrimary ?? true) provisionRegistry(this.#store, registry, systemClock, this.#log)
      this.#notifyThreads(undefined)
      if (certificate !== undefined) this.#watchCertificate(certificate)
      this.#log.info({ logLevel }, 'reloaded')
      const waiting = changedSettings(serviceSettings, this.#settings, settings)
      if (waiting.length > 0) this.#log.warn({ settings: waiting }, 'changed settings that require a restart')
    } catch (error) {
      logFailure(this.#log, error, 'not reloaded; the old settings stay in use')
    }
  }

  /** New connections of all listeners use the files, now and when their content changes. */
  #watchCertificate(files: Certificate): void {
    const isSame =
      this.#certificate?.certificateFile === files.certificateFile && this.#certificate.keyFile === files.keyFile
    if (this.#certificateWatch !== undefined && isSame) return this.#certificateWatch.poll()
    const isFirst = this.#certificateWatch === undefined
    this.#certificateWatch?.stop()
    this.#certificate = files
    this.#certificateWatch = new CertificateWatch(files, this.#log, () => this.#reloadCertificate(files))
    if (!isFirst) this.#reloadCertificate(files)
    this.#certificates.poll()
  }

  /** The CA certificates of identity providers are those that Node trusts. */
  #certificateFiles(): readonly CertificateFile[] {
    return [
      { name: 'tls_certificate', file: this.#certificate?.certificateFile ?? '' },
      { name: 'log_ca', file: this.#settings.brokerCa, isCa: true },
      { name: 'node_extra_ca_certs', file: process.env['NODE_EXTRA_CA_CERTS'] ?? '', isCa: true },
    ]
  }

  #reloadCertificate({ keyFile, certificateFile }: TlsFiles): void {
    const files = { keyFile, certificateFile }
    this.#certificates.poll()
    this.#notifyThreads(files)
    if (this.#settings.plainHttp) return
    this.#ingest?.reload(files).catch((error) => logFailure(this.#log, error, 'the certificate was not reloaded'))
  }

  #notifyThreads(tls: TlsFiles | undefined): void {
    const { logLevel, outboundNetworks, plainHttp } = this.#settings
    this.#syslog?.reload(tls, logLevel)
    this.#console?.reload(plainHttp ? undefined : tls, logLevel, outboundNetworks)
    const message: ToListenerThread = { kind: 'reload', tls: plainHttp ? undefined : tls, logLevel }
    for (const thread of this.#threads) thread.postMessage(message)
  }

  async #provideCertificate({ tlsKey, tlsCertificate, tlsNames, dataDir }: ServiceSettings): Promise<Certificate> {
    const own = tlsKey === '' ? undefined : { keyFile: tlsKey, certificateFile: tlsCertificate }
    const certificate = await provideCertificate(join(dataDir, 'tls'), own, tlsNames)
    this.#log.info(
      {
        certificate: certificate.certificateFile,
        fingerprint: certificate.fingerprint,
        pin: certificate.pin,
      },
      certificate.made ? 'made a self-signed certificate' : 'uses the certificate',
    )
    return certificate
  }

  /**
   * The first thread finds out which implementation is available. More threads start if it allows
   * several listeners on one port.
   */
  async #startApi(port: number, tls: ApiThreadData['tls']): Promise<{ threads: number; implementation: string }> {
    const { apiAddress: address, salesEmail, logLevel, accessLog, dataDir: dataDirectory, http, hsts } = this.#settings
    const { keys: rateTable, addresses: addressTable } = this.#rateTables
    const limits = this.#connectionLimits(API_DESCRIPTORS_SHARE / this.#settings.apiThreads)
    const shared = { counters: this.#apiCounters, connections: this.#connections.api, limits, rateTable, addressTable }
    const document = openApiAnswer(ROUTES, salesEmail)
    const cluster = this.#cluster?.shared
    const own = { dataDirectory, address, port, tls, http, hsts, salesEmail, logLevel, accessLog, document, cluster }
    const start = async (number: number): Promise<ThreadListening> => {
      const data: ApiThreadData = { ...own, ...shared, number }
      const thread = new Worker(new URL('./thread.js', import.meta.url), {
        workerData: data,
        // A request leaves little, short-lived garbage. Without a limit, each thread would use
        // three times as much memory for it.
        resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
      })
      this.#threads.push(thread)
      const listens = await listening(thread, API_THREAD)
      thread.on('message', (message: FromApiThread) => {
        if (message.kind === 'keysUsed') this.#keyUses.write(message.uses)
        if (message.kind === 'failed') this.#failure.reject(faultOf(message, API_THREAD))
      })
      thread.on('error', this.#failure.reject)
      thread.on('exit', () => this.#failure.reject(new Error('an API thread ended')))
      return listens
    }
    const { implementation, sharesPort } = await start(0)
    const threads = sharesPort ? this.#settings.apiThreads : 1
    await Promise.all(Array.from({ length: threads - 1 }, (_, index) => start(index + 1)))
    return { threads, implementation }
  }
}

/** The ports of a running service. */
export interface Listening {
  readonly apiPort: number
  readonly consolePort: number | undefined
  readonly ingestPort: number | undefined
  readonly metricsPort: number | undefined
  readonly syslog: readonly SyslogEndpoint[]
  readonly fingerprint: string | undefined
}

/** Why the release of the registry should be replaced; empty while it is valid. */
function registryProblem({ environment, registryReleases }: Store): string[] {
  const release = environment.read(() => registryReleases.inForce)
  const problem = release && expiryProblem({ validUntil: '', ...release }, systemClock.nowMs())
  return problem ? [problem] : []
}

/** The listeners of the threads of syslog ingest, which read dnstap, too. */
function syslogEndpoints(settings: ServiceSettings): SyslogEndpoint[] {
  const { ingestAddress, syslogTls, syslogTcp, syslogUdp, dnstapTls, dnstapTcp } = settings
  const endpoints = (
    of: Pick<SyslogEndpoint, 'kind' | 'setting' | 'dnstap'>,
    addresses: readonly ListenAddress[],
  ): SyslogEndpoint[] =>
    addresses.map(({ address, port }) => {
      return { ...of, port, address: wildcardAddress(address === '' ? ingestAddress : address) }
    })
  return [
    ...endpoints({ kind: 'tls', setting: '--syslog-tls' }, syslogTls),
    ...endpoints({ kind: 'tcp', setting: '--syslog-tcp' }, syslogTcp),
    ...endpoints({ kind: 'udp', setting: '--syslog-udp' }, syslogUdp),
    ...endpoints({ kind: 'tls', setting: '--dnstap-tls', dnstap: true }, dnstapTls),
    ...endpoints({ kind: 'tcp', setting: '--dnstap-tcp', dnstap: true }, dnstapTcp),
  ]
}
