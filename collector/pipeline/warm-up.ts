import { readFileSync } from 'node:fs'
import { allocatePool, BatchPool } from '../batch/batch-pool.ts'
import { RoundFiller } from '../capture/round.ts'
import { BatchDecoder, type DecodeOptions } from '../decode/decode-batch.ts'
import { WARM_UP_ROUNDS } from '../limits.ts'

/**
 * A capture of everything that is decoded, also used by `posture-collector selftest`. Classic pcap,
 * little-endian, Ethernet.
 */
const GOLDEN = new URL('../../../collector/selftest/golden.pcap', import.meta.url)
const FILE_HEADER_BYTES = 24
const RECORD_HEADER_BYTES = 16
const ETHERNET = 1
const SIZES = { frameBytes: 128 * 1024, rowBytes: 1024 * 1024, listFrames: 1024 }

/**
 * Runs the packet path over the golden capture until V8 has compiled it. Otherwise the first second
 * of a busy link would run in the interpreter, which is ten times slower. The names are discarded.
 * Takes about 50 ms, while packets wait in the ring.
 */
export function warmUp(options: DecodeOptions): void {
  const capture = readGolden()
  if (capture === undefined) return
  const pool = new BatchPool(allocatePool(1, 1, SIZES))
  // Every name writes a row, as a match does.
  const decoder = new BatchDecoder(0, { ...options, everyName: true })
  const filler = new RoundFiller(pool, { whenExhausted: 'drop', holdBack: false }, (round) => {
    const batch = pool.batch(round.batch)
    while (!decoder.decode(batch));
    pool.free(batch)
  })
  const frames = framesOf(capture)
  for (let round = 0; round < WARM_UP_ROUNDS; round++) {
    for (const { bytes, words, seconds } of frames) filler.put(bytes, words, bytes.length, seconds, 0, ETHERNET)
    filler.flush(0)
  }
}

/** Copies each frame to its own words, as a live capture provides it. */
function framesOf(capture: Buffer): { bytes: Buffer; words: Uint32Array; seconds: number }[] {
  const frames = []
  for (let at = FILE_HEADER_BYTES; at + RECORD_HEADER_BYTES <= capture.length; ) {
    const captured = capture.readUInt32LE(at + 8)
    const start = at + RECORD_HEADER_BYTES
    const words = new Uint32Array((captured + 3) >> 2)
    const bytes = Buffer.from(words.buffer, 0, captured)
    capture.copy(bytes, 0, start, start + captured)
    frames.push({ bytes, words, seconds: capture.readUInt32LE(at) })
    at = start + captured
  }
  return frames
}

/** Without the capture only the start is slower. */
function readGolden(): Buffer | undefined {
  try {
    return readFileSync(GOLDEN)
  } catch {
    return undefined
  }
}
