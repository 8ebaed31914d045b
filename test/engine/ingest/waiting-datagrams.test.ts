import t from 'tap'
import { Origin } from '../../../engine/ingest/origin.ts'
import { WaitingDatagrams } from '../../../engine/ingest/waiting-datagrams.ts'
import * as fc from '../../support/property.ts'

const WAIT_MS = 1000
const PEERS = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((address) => new Origin('udp', address, 514))

/** The store takes the datagrams of each peer, or not; what it took is in `taken`. */
function testSite(bytesMax = 100_000) {
  const full = new Set<Origin>()
  const overRate = new Set<Origin>()
  const taken: string[] = []
  const waiting = new WaitingDatagrams({
    bytesMax,
    waitMs: WAIT_MS,
    take(datagram, origin) {
      if (overRate.has(origin)) return 'overRate'
      if (full.has(origin)) return 'full'
      taken.push(Buffer.from(datagram).toString())
      return 'stored'
    },
  })
  return { full, overRate, taken, waiting }
}

t.test('datagrams wait, in order, and do not hold up other peers', async (t) => {
  const { full, taken, waiting } = testSite()
  const [one, other] = PEERS as [Origin, Origin]
  full.add(one)
  const reused = Buffer.from('a1')
  waiting.add(reused, one, 0)
  reused.fill('x')
  waiting.add(Buffer.from('b1'), other, 0)
  t.same(taken, ['b1'])
  full.delete(one)
  waiting.add(Buffer.from('a2'), one, 10)
  t.same(taken, ['b1'], 'a later datagram does not overtake')
  waiting.resume(20)
  t.same(taken, ['b1', 'a1', 'a2'], 'the bytes are a copy')
  t.equal(waiting.count, 0)
  t.equal(waiting.dropped, 0)
})

t.test('datagrams are dropped and counted', async (t) => {
  const rows: readonly { name: string; cause: (site: ReturnType<typeof testSite>, peer: Origin) => void }[] = [
    {
      name: 'when they have waited for the time',
      cause({ full, waiting }, peer) {
        full.add(peer)
        waiting.add(Buffer.from('a'), peer, 0)
        waiting.resume(WAIT_MS)
        t.equal(waiting.dropped, 0)
        waiting.resume(WAIT_MS + 1)
      },
    },
    {
      name: 'when the clock was set back',
      cause({ full, waiting }, peer) {
        full.add(peer)
        waiting.add(Buffer.from('a'), peer, 5000)
        waiting.resume(4000)
      },
    },
    {
      name: 'when there is no space',
      cause({ full, waiting }, peer) {
        full.add(peer)
        waiting.add(Buffer.alloc(99_000), peer, 0)
        waiting.add(Buffer.alloc(1000), peer, 0)
        t.equal(waiting.dropped, 1)
        waiting.resume(WAIT_MS + 1)
        waiting.add(Buffer.alloc(99_000), peer, 0)
        t.equal(waiting.count, 1, 'space is free again')
        waiting.resume(WAIT_MS + 1)
      },
    },
    {
      name: 'when the token is over its rate, at once',
      cause({ overRate, waiting }, peer) {
        overRate.add(peer)
        waiting.add(Buffer.from('a'), peer, 0)
      },
    },
  ]
  for (const { name, cause } of rows) {
    const site = testSite()
    cause(site, PEERS[0] as Origin)
    t.equal(site.waiting.count, 0, name)
    t.ok(site.waiting.dropped > 0, name)
  }
})

t.test('each datagram is taken once in its order, or dropped', async (t) => {
  const peers = fc.constantFrom(...PEERS)
  const step = fc.oneof(
    fc.record({ kind: fc.constant('add' as const), peer: peers }),
    fc.record({ kind: fc.constant('full' as const), peer: peers }),
    fc.record({ kind: fc.constant('free' as const), peer: peers }),
    fc.record({ kind: fc.constant('resume' as const), ms: fc.nat(700) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 200, max: 5000 }), (steps, bytesMax) => {
      const { full, taken, waiting } = testSite(bytesMax)
      let nowMs = 0
      let added = 0
      for (const each of steps) {
        if (each.kind === 'add')
          waiting.add(Buffer.from(`${PEERS.indexOf(each.peer)} ${String(++added).padStart(6, '0')}`), each.peer, nowMs)
        else if (each.kind === 'full') full.add(each.peer)
        else if (each.kind === 'free') full.delete(each.peer)
        else {
          nowMs += each.ms
          waiting.resume(nowMs)
        }
      }
      if (taken.length + waiting.count + waiting.dropped !== added) return false
      full.clear()
      waiting.resume(nowMs)
      const isInOrder = PEERS.every((_, index) => {
        const own = taken.filter((text) => text.startsWith(`${index} `))
        return own.join() === [...own].sort().join()
      })
      return waiting.count === 0 && isInOrder && taken.length + waiting.dropped === added
    }),
  )
  t.end()
})
