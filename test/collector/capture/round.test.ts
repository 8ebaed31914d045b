import t from 'tap'
import { allocatePool, BatchPool } from '../../../collector/capture/batch-pool.ts'
import { flowHash } from '../../../collector/capture/flow-hash.ts'
import { BatchState } from '../../../collector/capture/frame-batch.ts'
import { type Round, RoundFiller } from '../../../collector/capture/round.ts'
import { addressBytes, ethernet, ipv4, ipv6, tcp, udp } from '../../support/packets.ts'

function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

function hashOf(frame: Buffer): number {
  return flowHash(viewOf(frame), 1, 0, frame.length)
}

t.test('both directions of a flow have one hash, different flows differ', async (t) => {
  const hashes = new Set<number>()
  for (let port = 1000; port < 1100; port++) {
    const there = ethernet(
      {},
      ipv4({ source: '10.0.0.7', destination: '192.0.2.1' }, tcp({ sourcePort: port, destinationPort: 443 })),
    )
    const back = ethernet(
      {},
      ipv4({ source: '192.0.2.1', destination: '10.0.0.7' }, tcp({ sourcePort: 443, destinationPort: port })),
    )
    t.equal(hashOf(there), hashOf(back))
    hashes.add(hashOf(there))
  }
  t.equal(hashes.size, 100)
  const odd = [...hashes].filter((hash) => hash % 2 === 1).length
  t.ok(odd > 30 && odd < 70, `${odd} of 100 flows fall to the second of two lanes`)
  const there = ethernet(
    {},
    ipv6(
      { source: '2001:db8::1', destination: '2001:db8::2' },
      udp({ sourcePort: 5, destinationPort: 53 }, Buffer.alloc(4)),
    ),
  )
  const back = ethernet(
    {},
    ipv6(
      { source: '2001:db8::2', destination: '2001:db8::1' },
      udp({ sourcePort: 53, destinationPort: 5 }, Buffer.alloc(4)),
    ),
  )
  t.equal(hashOf(there), hashOf(back))
  t.equal(hashOf(Buffer.from(addressBytes('10.0.0.1'))), 0, 'what is no IP')
})

const SIZES = { frameBytes: 1024, rowBytes: 1024, listFrames: 8 }
const LIVE = { whenExhausted: 'drop', holdBack: false } as const

t.test('a live capture whose pool is taken drops and counts; a batch that was freed is used again', async (t) => {
  const pool = new BatchPool(allocatePool(1, 1, SIZES))
  const rounds: Round[] = []
  const filler = new RoundFiller(pool, LIVE, (round) => rounds.push(round))
  const frame = Buffer.alloc(300)
  const put = () => filler.put(frame, frame.length, 1, 2, 1)
  t.same([put(), put(), put()], [true, true, true], 'three frames of 300 bytes fit into 1024')
  t.same([put(), put()], [false, false])
  t.equal(pool.dropped.pool, 2)
  t.same(rounds, [{ firstFrame: 0, frames: 3, batch: 0, bytesRead: 0, last: false }])
  const batch = pool.batch(0)
  pool.free(batch)
  t.ok(put())
  filler.flush(0)
  t.same(rounds[1], { firstFrame: 3, frames: 1, batch: 0, bytesRead: 0, last: false })
  t.equal(batch.sequence, 1)
})

t.test('a list that is full ends a batch, too', async (t) => {
  const pool = new BatchPool(allocatePool(2, 2, SIZES))
  const rounds: Round[] = []
  const filler = new RoundFiller(pool, LIVE, (round) => rounds.push(round))
  for (let frame = 0; frame < 9; frame++) t.ok(filler.put(Buffer.alloc(1), 1, 1, 2, 1))
  filler.finish(0)
  t.same(
    rounds.map(({ frames, last }) => ({ frames, last })),
    [
      { frames: 8, last: false },
      { frames: 1, last: true },
    ],
  )
})

t.test('held back, the last round that has frames is known to be the last', async (t) => {
  const pool = new BatchPool(allocatePool(3, 1, SIZES))
  const rounds: Round[] = []
  const filler = new RoundFiller(pool, { whenExhausted: 'wait', holdBack: true }, (round) => rounds.push(round))
  const put = () => filler.put(Buffer.alloc(8), 8, 1, 2, 1)
  put()
  filler.flush(10)
  t.same(rounds, [], 'it may be the last')
  put()
  filler.flush(20)
  t.same(
    rounds.map(({ frames, last }) => ({ frames, last })),
    [{ frames: 1, last: false }],
  )
  filler.finish(20)
  t.same(rounds[1], { firstFrame: 1, frames: 1, batch: 1, bytesRead: 20, last: true })
  t.equal(pool.batch(1).last, true)
  t.equal(pool.batch(0).last, false)
})

t.test('a source without a frame has one empty round, the last', async (t) => {
  const pool = new BatchPool(allocatePool(2, 1, SIZES))
  const rounds: Round[] = []
  const filler = new RoundFiller(pool, { whenExhausted: 'wait', holdBack: true }, (round) => rounds.push(round))
  filler.finish(24)
  t.same(rounds, [{ firstFrame: 0, frames: 0, batch: 0, bytesRead: 24, last: true }])
})

t.test('a source that is abandoned has no last round', async (t) => {
  const pool = new BatchPool(allocatePool(3, 1, SIZES))
  const rounds: Round[] = []
  const filler = new RoundFiller(pool, { whenExhausted: 'wait', holdBack: true }, (round) => rounds.push(round))
  filler.put(Buffer.alloc(8), 8, 1, 2, 1)
  filler.flush(10)
  filler.put(Buffer.alloc(8), 8, 1, 2, 1)
  pool.stop()
  filler.abandon()
  t.same(
    rounds.map(({ frames, last }) => ({ frames, last })),
    [
      { frames: 1, last: false },
      { frames: 1, last: false },
    ],
  )
})

t.test('a batch that is not its owner`s is not passed on', async (t) => {
  const pool = new BatchPool(allocatePool(1, 1, SIZES))
  const batch = pool.take()
  t.throws(() => batch?.pass(BatchState.ready, BatchState.free), /found state 1, expected 2/)
  t.equal(pool.tryTake(), undefined)
  pool.stop()
  t.equal(pool.take(), undefined, 'a stop ends the wait')
})
