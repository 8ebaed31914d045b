import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Certificate, provideCertificate } from '../engine/http/certificate.ts'
import { claimPort, listenHttp, sharesPorts } from '../engine/http/listen.ts'
import type { HttpListener } from '../engine/http/port.ts'
import { EventAcceptor } from '../engine/ingest/accept.ts'
import { type BatchCounters, eventsHandler } from '../engine/ingest/https-batches.ts'
import { NameMatcher } from '../engine/ingest/match.ts'
import { systemClock } from '../engine/process/clock.ts'
import type { Logger } from '../engine/process/log.ts'
import { within } from '../engine/process/shutdown.ts'
import { ScanSchedule } from '../engine/scan/schedule.ts'
import { Store } from '../engine/store/store.ts'
import type { Catalog } from '../registry/catalog.ts'
import type { ServiceSettings } from './config.ts'
import { makeRateTable } from './rate-limit.ts'
import type { ApiThreadData, FromApiThread, ToApiThread } from './thread.ts'

/** The service's stages wired together: ingest, scans, and the API threads, over one store. */
export class Service {
  readonly #settings: ServiceSettings
  readonly #log: Logger
  readonly #store: Store
  readonly #schedule: ScanSchedule
  readonly #acceptor: EventAcceptor
  readonly #batches: BatchCounters = { batches: 0, unauthorised: 0, malformed: 0, turnedAway: 0 }
  #ingest: HttpListener | undefined
  #threads: Worker[] = []
  #settleFailure: (error: Error) => void = () => {}
  /** Rejects when a part that the service cannot do without ends by itself. */
  readonly failure: Promise<never>

  /** @throws Fault of the store; see Store. */
  constructor(settings: ServiceSettings, catalog: Catalog, log: Logger) {
    this.#settings = settings
    this.#log = log
    this.#store = new Store(settings.dataDir)
    const matcher = new NameMatcher(catalog)
    this.#schedule = new ScanSchedule(this.#store, matcher, systemClock, log)
    this.#acceptor = new EventAcceptor(this.#store, matcher, systemClock, log, (organizationId) =>
      this.#schedule.noteBuffered(organizationId),
    )
    this.failure = new Promise((_, reject) => {
      this.#settleFailure = reject
    })
    // Whoever runs the service awaits it; until then an early failure must not count as unhandled.
    this.failure.catch(() => {})
  }

  /**
   * Opens the ports, then starts the scans.
   *
   * @throws Fault PORT_TAKEN, PORT_DENIED, CERTIFICATE.
   */
  async start(): Promise<{ apiPort: number; ingestPort: number; fingerprint: string | undefined }> {
    const settings = this.#settings
    const apiPort = await claimPort('--api-port', settings.apiAddress, settings.apiPort)
    const ingestPort = await claimPort('--ingest-port', settings.ingestAddress, settings.ingestPort)
    const certificate = settings.plainHttp ? undefined : await this.#certificate()
    const tls = certificate && { keyFile: certificate.keyFile, certificateFile: certificate.certificateFile }
    this.#ingest = await listenHttp(settings.http, {
      address: settings.ingestAddress,
      port: ingestPort,
      ...(tls ? { tls } : {}),
      handler: eventsHandler(this.#store, this.#acceptor, this.#batches),
      log: this.#log,
    })
    const { implementation } = this.#ingest
    const threads = sharesPorts(this.#ingest) ? settings.apiThreads : 1
    await this.#startApi(apiPort, tls, implementation === 'node:http' ? 'node' : 'uws', threads)
    this.#schedule.start()
    const scheme = tls ? 'https' : 'http'
    this.#log.info({ url: `${scheme}://${settings.ingestAddress}:${ingestPort}`, implementation }, 'ingest listens')
    this.#log.info(
      { url: `${scheme}://${settings.apiAddress}:${apiPort}/api/v1`, implementation, threads },
      'API listens',
    )
    return { apiPort, ingestPort, fingerprint: certificate?.fingerprint }
  }

  /** Lets what is under way end, for `deadlineMs`, and closes the store. */
  async drain(deadlineMs: number): Promise<void> {
    this.#schedule.stop()
    const drained = [this.#ingest?.drain(deadlineMs), ...this.#threads.map((thread) => drainThread(thread, deadlineMs))]
    if (!(await within(deadlineMs + 1000, Promise.all(drained)))) this.#log.warn('some connections were cut')
    this.#log.info({ ...this.#acceptor.counters, ...this.#batches }, 'stopped')
    await this.#store.close()
  }

  async #certificate(): Promise<Certificate> {
    const { tlsKey, tlsCertificate, dataDir } = this.#settings
    const own = tlsKey === '' ? undefined : { keyFile: tlsKey, certificateFile: tlsCertificate }
    const certificate = await provideCertificate(join(dataDir, 'tls'), own)
    this.#log.info(
      { certificate: certificate.certificateFile, fingerprint: certificate.fingerprint },
      certificate.made ? 'made a self-signed certificate' : 'uses the certificate',
    )
    return certificate
  }

  async #startApi(port: number, tls: ApiThreadData['tls'], http: ApiThreadData['http'], count: number): Promise<void> {
    const { apiAddress: address, salesEmail, logLevel, dataDir: dataDirectory } = this.#settings
    const rateTable = makeRateTable()
    const data: ApiThreadData = { dataDirectory, address, port, tls, http, salesEmail, logLevel, rateTable }
    const threads = Array.from({ length: count }, () => {
      return new Worker(new URL('./thread.js', import.meta.url), { workerData: data })
    })
    this.#threads = threads
    await Promise.all(threads.map(listening))
    for (const thread of threads) {
      thread.on('error', (error) => this.#settleFailure(error))
      thread.on('exit', () => this.#settleFailure(new Error('an API thread ended')))
    }
  }
}

function listening(thread: Worker): Promise<void> {
  return new Promise((resolve, reject) => {
    thread.once('error', reject)
    thread.once('message', (message: FromApiThread) => {
      thread.off('error', reject)
      if (message.kind === 'listening') resolve()
    })
  })
}

function drainThread(thread: Worker, deadlineMs: number): Promise<void> {
  return new Promise((resolve) => {
    thread.removeAllListeners('exit')
    thread.once('exit', () => resolve())
    const message: ToApiThread = { kind: 'drain', deadlineMs }
    thread.postMessage(message)
  })
}
