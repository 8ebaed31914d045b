import t from 'tap'
import { NAME_TEXT_BYTES_MAX } from '../../collector/decode/name.ts'
import { madeCaptures } from '../captures/cases.ts'
import { fill } from '../support/packets-tls.ts'
import { FrameDecoder } from './decode-frames.ts'

/** Bounded here; a longer run is this test with a greater number. */
const MUTATIONS = Number(process.env['FUZZ_MUTATIONS'] ?? 200_000)
const SEED = Number(process.env['FUZZ_SEED'] ?? 1)
const LINK_TYPES = [1, 1, 1, 101, 113, 276, 105]
const HOST_NAME = /^(?:[a-z0-9_.-]|\\\d{3})*$/

t.test(`${MUTATIONS} changed packets: no throw, one class each, names in their alphabet (seed ${SEED})`, async (t) => {
  const frames = Object.values(madeCaptures()).flatMap(({ packets }) => packets.map(({ bytes }) => bytes))
  const bytes = fill(SEED)
  const draw = (below: number) => (below === 0 ? 0 : bytes(4).readUInt32BE() % below)
  const decoder = new FrameDecoder()
  let found = 0
  for (let mutation = 0; mutation < MUTATIONS; mutation++) {
    const frame = Buffer.from(frames[draw(frames.length)] as Buffer)
    for (let flips = draw(4); flips >= 0 && frame.length > 0; flips--) {
      // Most of the structure stands in the first bytes.
      const at = draw(draw(2) === 0 ? Math.min(frame.length, 120) : frame.length)
      if (draw(4) === 0 && at + 2 <= frame.length)
        frame.writeUInt16BE([0, 1, 0xffff, frame.length][draw(4)] as number, at)
      else frame[at] = draw(256)
    }
    const cut = draw(3) === 0 ? frame.subarray(0, draw(frame.length + 1)) : frame
    // decode() itself throws when a frame is not in exactly one class.
    const { names } = decoder.decode([cut], LINK_TYPES[draw(LINK_TYPES.length)])
    for (const { name } of names) {
      if (!HOST_NAME.test(name) || name.length > NAME_TEXT_BYTES_MAX) t.fail(`name ${name} of ${cut.toString('hex')}`)
    }
    found += names.length
  }
  t.ok(found > MUTATIONS / 100, `${found} names came out all the same`)
})
