import { Administration } from '../engine/admin/administration.ts'
import { provideCertificate } from '../engine/http/certificate.ts'
import { listenHttp } from '../engine/http/listen.ts'
import { EventAcceptor } from '../engine/ingest/accept.ts'
import { eventsHandler } from '../engine/ingest/https-batches.ts'
import { systemClock } from '../engine/kernel/process/clock.ts'
import { createLogger } from '../engine/kernel/process/log.ts'
import { Store } from '../engine/store/store.ts'

/**
 * A separate process that accepts batches like the service, but without scans. Its parent empties
 * the buffers between rounds.
 */
export interface ServiceUnderLoad {
  readonly port: number
  readonly certificateFile: string
  /** One token per organization. */
  readonly tokens: readonly string[]
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
const tls = { keyFile, certificateFile }
const https = await listenHttp('auto', { address: '127.0.0.1', port: 0, tls, handler, log })
process.send?.({ port: https.port, certificateFile, tokens } satisfies ServiceUnderLoad)

/** Answers with the number of events that were in the buffers. */
process.on('message', () => {
  let buffered = 0
  store.environment.write(() => {
    for (const id of ids) {
      buffered += store.buffer.count(id)
      store.buffer.removeThrough(id, Number.MAX_SAFE_INTEGER)
    }
  })
  process.send?.(buffered)
})
process.once('disconnect', async () => {
  await https.drain(100)
  await store.close()
})
