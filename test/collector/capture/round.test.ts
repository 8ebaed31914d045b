import t from 'tap'
import { allocatePool, BatchPool } from '../../../collector/batch/batch-pool.ts'
import { BatchState } from '../../../collector/batch/frame-batch.ts'
import { flowHash, type Round, RoundFiller } from '../../../collector/capture/round.ts'
import { addressBytes, ipFrame, tcp, udp } from '../../support/packets.ts'

function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

function hashOf(frame: Buffer): number {
  return flowHash(viewOf(frame), 1, 0, frame.length)
}

t.test('both directions of a flow have the same hash, and other flows another one', async (t) => {
  const hashes = new Set<number>()
  for (let port = 1000; port < 1100; port++) {
    const forth = ipFrame(
      { source: '10.0.0.7', destination: '192.0.2.1' },
      tcp({ sourcePort: port, destinationPort: 443 }),
    )
    const back = ipFrame(
      { source: '192.0.2.1', destination: '10.0.0.7' },
      tcp({ sourcePort: 443, destinationPort: port }),
    )
    t.equal(hashOf(forth), hashOf(back))
    hashes.add(hashOf(forth))
  }
  t.equal(hashes.size, 100)
  const odd = [...hashes].filter((hash) => hash % 2 === 1).length
  t.ok(odd > 30 && odd < 70, `${odd} of 100 flows go to the second of two lanes`)
  const forth = ipFrame(
    { source: '2001:db8::1', destination: '2001:db8::2' },
    udp({ sourcePort: 5, destinationPort: 53 }, Buffer.alloc(4)),
  )
  const back = ipFrame(
    { source: '2001:db8::2', destination: '2001:db8::1' },
    udp({ sourcePort: 53, destinationPort: 5 }, Buffer.alloc(4)),
  )
  t.equal(hashOf(forth), hashOf(back))
  t.equal(hashOf(Buffer.from(addressBytes('10.0.0.1'))), 0, 'a frame without IP')
})

const SIZES = { frameBytes: 1024, rowBytes: 1024, listFrames: 8 }
const LIVE = { whenExhausted: 'drop', holdBack: false } as const

/** Puts a frame of this many bytes, with values counting up from 1. */
function putBytes(filler: RoundFiller, bytes: number): boolean {
  const words = new Uint32Array(Math.ceil(bytes / 4))
  const frame = Buffer.from(words.buffer, 0, bytes)
  for (let at = 0; at < bytes; at++) frame[at] = at + 1
  return filler.put(frame, words, bytes, 1, 2, 1)
}

t.test('a frame of any length is copied completely', async (t) => {
  const frameBytes = 4096
  const pool = new BatchPool(allocatePool(1, 1, { ...SIZES, frameBytes, listFrames: 16 }))
  const filler = new RoundFiller(pool, LIVE, () => {})
  const lengths = [1, 2, 3, 4, 5, 60, 511, 512, 513, 1514]
  for (const length of lengths) t.ok(putBytes(filler, length))
  const { bytes, lanes } = pool.batch(0)
  const section = lanes[0]
  for (const [index, length] of lengths.entries()) {
    const offset = section?.frameOffset(index) ?? 0
    t.equal(section?.frameCaptured(index), length)
    t.equal(offset % 4, 0)
    t.same(bytes.subarray(offset, offset + length), Buffer.from(Array.from({ length }, (_byte, at) => (at + 1) & 0xff)))
  }
})

t.test('a live capture reports an exhausted pool, and reuses a freed batch', async (t) => {
  const pool = new BatchPool(allocatePool(1, 1, SIZES))
  const rounds: Round[] = []
  const filler = new RoundFiller(pool, LIVE, (round) => rounds.push(round))
  const put = () => putBytes(filler, 300)
  t.same([put(), put(), put()], [true, true, true], 'three frames of 300 bytes fit into 1024')
  t.same([put(), put()], [false, false])
  t.same(rounds, [{ firstFrame: 0, frames: 3, batch: 0, bytesRead: 0, last: false }])
  const batch = pool.batch(0)
  pool.free(batch)
  t.ok(put())
  filler.flush(0)
  t.same(rounds[1], { firstFrame: 3, frames: 1, batch: 0, bytesRead: 0, last: false })
  t.equal(batch.sequence, 1)
})

t.test('a full frame list also ends a batch', async (t) => {
  const pool = new BatchPool(allocatePool(2, 2, SIZES))
  const rounds: Round[] = []
  const filler = new RoundFiller(pool, LIVE, (round) => rounds.push(round))
  for (let frame = 0; frame < 9; frame++) t.ok(putBytes(filler, 1))
  filler.finish(0)
  t.same(
    rounds.map(({ frames, last }) => ({ frames, last })),
    [
      { frames: 8, last: false },
      { frames: 1, last: true },
    ],
  )
})

t.test('the last round with frames is held back until it is known to be the last', async (t) => {
  const pool = new BatchPool(allocatePool(3, 1, SIZES))
  const rounds: Round[] = []
  const filler = new RoundFiller(pool, { whenExhausted: 'wait', holdBack: true }, (round) => rounds.push(round))
  const put = () => putBytes(filler, 8)
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

t.test('a source without frames has one empty last round', async (t) => {
  const pool = new BatchPool(allocatePool(2, 1, SIZES))
  const rounds: Round[] = []
  const filler = new RoundFiller(pool, { whenExhausted: 'wait', holdBack: true }, (round) => rounds.push(round))
  filler.finish(24)
  t.same(rounds, [{ firstFrame: 0, frames: 0, batch: 0, bytesRead: 24, last: true }])
})

t.test('an abandoned source has no last round', async (t) => {
  const pool = new BatchPool(allocatePool(3, 1, SIZES))
  const rounds: Round[] = []
  const filler = new RoundFiller(pool, { whenExhausted: 'wait', holdBack: true }, (round) => rounds.push(round))
  putBytes(filler, 8)
  filler.flush(10)
  putBytes(filler, 8)
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

t.test('a batch is passed on only by its owner', async (t) => {
  const pool = new BatchPool(allocatePool(1, 1, SIZES))
  const batch = pool.take()
  t.throws(() => batch?.pass(BatchState.ready, BatchState.free), /found state 1, expected 2/)
  t.equal(pool.tryTake(), undefined)
  pool.stop()
  t.equal(pool.take(), undefined, 'a stop ends the wait')
})
