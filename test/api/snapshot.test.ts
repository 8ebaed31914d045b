import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import type { RateLimit } from '../../api/rate-limit/rate-limit.ts'
import { serveApi } from '../support/api-site.ts'
import { IMPLEMENTATIONS } from '../support/https.ts'
import { makeOrganization } from '../support/store.ts'

const ANSWERS_MIN = 300
/** So that answers and publications overlap at many points. */
const LISTS_MIN = 30
/** The queries, and how a client verifies that the elements belong to the head. */
const QUERIES = ['', '', '?limit=100', '?limit=7&offset=95', '?limit=100&offset=100'] as const

const unlimited = {
  take: () => ({ allowed: true, remaining: 1, resetSeconds: 1 }),
} as unknown as RateLimit

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}: each answer comes from a single list`, async (t) => {
    const limits = { rateLimit: unlimited, addressLimit: unlimited }
    const { opened, ask, key } = await serveApi(t, implementation, limits, { unchecked: true })
    const { id } = makeOrganization(opened, 'Acme')
    const headers = { 'x-api-key': key('Acme') }
    const stop = new SharedArrayBuffer(8)
    const flag = new Int32Array(stop)
    const workerData = { directory: opened.directory, organizationId: id, stop }
    const publisher = new Worker(new URL('../support/publish-fast.js', import.meta.url), { workerData })
    const ended = once(publisher, 'exit')
    /** The body of each tag, by query and coding. */
    const bodies = new Map<string, string>()
    const numbers = new Set<number>()
    const faults: string[] = []
    let last = 0
    let asked = 0
    while (Atomics.load(flag, 1) === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    for (; asked < ANSWERS_MIN || numbers.size < LISTS_MIN; asked++) {
      const query = QUERIES[asked % QUERIES.length] ?? ''
      const coding = asked % 3 === 0 ? 'gzip' : 'identity'
      const answer = await ask(`/api/v1/discovery${query}`, {
        headers: { ...headers, 'accept-encoding': coding },
      })
      const { scan, platforms } = answer.body as { scan: { number: number }; platforms: { number: number }[] }
      const offset = Number(new URLSearchParams(query).get('offset') ?? 0)
      const limit = Number(new URLSearchParams(query).get('limit') ?? 100)
      const mixed = platforms.filter(({ number }) => number !== scan.number)
      const expected = Math.max(0, Math.min(limit, 101 + (scan.number % 50) - offset))
      const name = `${query} ${answer.headers['etag']}`
      if (mixed.length > 0) faults.push(`a list of ${scan.number} with an element of ${mixed[0]?.number}`)
      if (platforms.length !== expected) faults.push(`${platforms.length} elements of ${scan.number}, not ${expected}`)
      if ((bodies.get(name) ?? answer.text) !== answer.text) faults.push(`${name} is the tag of two answers`)
      if (scan.number < last) faults.push(`${scan.number} after ${last}`)
      bodies.set(name, answer.text)
      numbers.add(scan.number)
      last = scan.number
    }
    Atomics.store(flag, 0, 1)
    await ended
    t.same(faults, [], `${numbers.size} lists were seen, of ${flag[1]}, in ${asked} answers`)
  })
}
