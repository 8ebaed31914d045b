import { Administration } from '../engine/admin/administration.ts'
import { provideCertificate } from '../engine/http/certificate.ts'
import { listenHttp } from '../engine/http/listen.ts'
import type { HttpListener } from '../engine/http/port.ts'
import { EventAcceptor } from '../engine/ingest/accept.ts'
import { eventsHandler } from '../engine/ingest/https-batches.ts'
import { systemClock } from '../engine/process/clock.ts'
import { createLogger } from '../engine/process/log.ts'
import { Store } from '../engine/store/store.ts'

/**
 * A separate process that accepts batches like the service, but without scans. Its parent empties
 * the buffers between rounds.
 */
export interface ServiceUnderLoad {
  readonly httpsPort: number
  readonly httpPort: number
  readonly certificateFile: string
  /** One token per organization. */
  readonly tokens: readonly string[]
}
export interface Emptied {
  /** Number of events in the buffers. */
  readonly buffered: number
  readonly cpuSeconds: number
  readonly residentMegabytes: number
}

const [directory = '', organizations = '1'] = process.argv.slice(2)
const store = new Store(directory)
const log = createLogger('bench', 'ERROR')
const acceptor = new EventAcceptor(store, systemClock, log, () => {})
const administration = new Administration(store, systemClock)
const ids: string[] = []
const tokens = Array.from({ length: Number(organizations) }, (_, index) => {
  const organization = store.environment.write(() =>
    store.organizations.create(
      { name: `Bench ${index}`, domain: `b${index}.example`, plan: 'enterprise' },
      systemClock.nowMs(),
    ),
  )
  ids.push(organization.id)
  return administration.tokens.generate(organization, 'bench').raw
})
const { keyFile, certificateFile } = await provideCertificate(`${directory}/tls`, undefined)
const handler = eventsHandler(store, acceptor, { batches: 0, unauthorized: 0, malformed: 0, overloaded: 0 })
const listen = (tls?: { keyFile: string; certificateFile: string }): Promise<HttpListener> =>
  listenHttp('auto', { address: '127.0.0.1', port: 0, ...(tls ? { tls } : {}), handler, log })
const https = await listen({ keyFile, certificateFile })
const http = await listen()
const started: ServiceUnderLoad = { httpsPort: https.port, httpPort: http.port, certificateFile, tokens }
process.send?.(started)

process.on('message', () => {
  let buffered = 0
  store.environment.write(() => {
    for (const id of ids) {
      buffered += store.buffer.count(id)
      store.buffer.removeThrough(id, Number.MAX_SAFE_INTEGER)
    }
  })
  const { user, system } = process.cpuUsage()
  const emptied: Emptied = {
    buffered,
    cpuSeconds: (user + system) / 1e6,
    residentMegabytes: Math.round(process.memoryUsage().rss / 1e6),
  }
  process.send?.(emptied)
})
process.once('disconnect', async () => {
  await Promise.all([https.drain(100), http.drain(100)])
  await store.close()
})
