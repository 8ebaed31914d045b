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

t.test('a live capture whose pool is taken drops and counts; a batch that was freed is used again', async (t) => {
  const pool = new BatchPool(allocatePool(1, 1024, 1024))
  const rounds: Round[] = []
  const filler = new RoundFiller(pool, 1, 1, 0, 'drop', (round) => rounds.push(round))
  const frame = Buffer.alloc(300)
  const put = () => filler.put(frame, viewOf(frame), 0, frame.length, frame.length, 1, 2, 0)
  t.same([put(), put(), put()], [true, true, true], 'three frames of 300 bytes fit into 1024')
  t.same([put(), put()], [false, false])
  t.equal(pool.dropped.pool, 2)
  t.same(rounds, [{ firstFrame: 0, frames: 3, batches: [0], bytesRead: 0 }])
  const batch = pool.batch(0)
  batch.pass(BatchState.ready, BatchState.decoding)
  pool.free(batch)
  t.ok(put())
  filler.flush(0)
  t.same(rounds[1], { firstFrame: 3, frames: 1, batches: [0], bytesRead: 0 })
  t.equal(batch.sequence, 1)
})

t.test('a batch that is not its owner`s is not passed on', async (t) => {
  const pool = new BatchPool(allocatePool(1, 1024, 1024))
  const batch = pool.take()
  t.throws(() => batch?.pass(BatchState.ready, BatchState.decoding), /found state 1, expected 2/)
  t.equal(pool.tryTake(), undefined)
  pool.stop()
  t.equal(pool.take(), undefined, 'a stop ends the wait')
})
