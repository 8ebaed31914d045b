import { readFileSync } from 'node:fs'
import { allocatePool, BatchPool } from '../batch/batch-pool.ts'
import { RoundFiller } from '../capture/round.ts'
import { BatchDecoder, type DecodeOptions } from '../decode/decode-batch.ts'
import { WARM_UP_ROUNDS } from '../limits.ts'

/** A capture of all that is decoded; `posture-collector selftest` reads it, too. Classic pcap, little-endian, Ethernet. */
const GOLDEN = new URL('../../../collector/selftest/golden.pcap', import.meta.url)
const FILE_HEADER_BYTES = 24
const RECORD_HEADER_BYTES = 16
const ETHERNET = 1
const SIZES = { frameBytes: 128 * 1024, rowBytes: 1024 * 1024, listFrames: 1024 }

/**
 * Runs the packet path over the golden capture until it is compiled, so that the first second of a busy link does not meet an interpreter
 * that is ten times slower. What it finds is forgotten. About 50 ms; packets wait in the ring meanwhile.
 */
export function warmUp(options: DecodeOptions): void {
  const capture = readGolden()
  if (capture === undefined) return
  const pool = new BatchPool(allocatePool(1, 1, SIZES))
  // Every name makes a row, as a match does.
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

/** Each frame in words of its own, as a packet of a live capture is. */
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

/** Without it the start is slower, and that is all. */
function readGolden(): Buffer | undefined {
  try {
    return readFileSync(GOLDEN)
  } catch {
    return undefined
  }
}
