import type { ByteSource } from '../../engine/process/byte-source.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { allocatePool, BatchPool } from '../batch/batch-pool.ts'
import { CaptureFile } from '../capture/capture-file.ts'
import { feedFile } from '../capture/feed-file.ts'
import { type Round, RoundFiller } from '../capture/round.ts'
import { BatchDecoder } from '../decode/decode-batch.ts'
import { type ObservedName, readRow, rowBytes } from '../decode/name-rows.ts'
import { DNS_PORTS, TLS_PORTS } from '../decode/ports.ts'
import { BATCH_FRAME_BYTES, BATCH_LIST_FRAMES, BATCH_ROW_BYTES } from '../limits.ts'
import { RESOLVERS } from '../visibility.ts'
import { DecodeCounts } from './delivery.ts'

/** The bytes of one batch end in the middle of a record, which begins the next one. */
const BATCHES = 2

export interface InlineObservation {
  readonly format: 'pcap' | 'pcapng'
  readonly counts: DecodeCounts
  /** Why the file ended early; undefined if it is intact. */
  readonly damage: string | undefined
}

/**
 * Observes every name of a capture in the calling thread. Slower than observe(), but it needs 10 MB
 * of memory, no other thread and no native library: for a process that reads untrusted files.
 *
 * @throws Fault CAPTURE_FORMAT, CAPTURE_DAMAGED if the file has no valid beginning.
 */
export async function observeInline(
  source: ByteSource,
  onName: (name: ObservedName) => void,
): Promise<InlineObservation> {
  const file = await CaptureFile.of(source)
  const sizes = { frameBytes: BATCH_FRAME_BYTES, rowBytes: BATCH_ROW_BYTES, listFrames: BATCH_LIST_FRAMES }
  const pool = new BatchPool(allocatePool(BATCHES, 1, sizes))
  const decoder = new BatchDecoder(0, {
    trie: compileTrie([]),
    resolvers: compileTrie(RESOLVERS),
    everyName: true,
    dnsPorts: DNS_PORTS,
    tlsPorts: TLS_PORTS,
  })
  const counts = new DecodeCounts()
  const decode = (round: Round): void => {
    const batch = pool.batch(round.batch)
    const section = batch.lane(0)
    for (let done = false; !done; ) {
      done = decoder.decode(batch)
      counts.add(section)
      const end = section.rowsStart + section.run.rowBytes
      for (let at = section.rowsStart; at < end; at += rowBytes(batch.view, at)) {
        onName(readRow(batch.view, batch.bytes, at))
      }
    }
    pool.free(batch)
  }
  const filler = new RoundFiller(pool, { whenExhausted: 'wait', holdBack: false }, decode)
  try {
    await feedFile(file, pool, filler)
  } finally {
    file.close()
  }
  return { format: file.format, counts, damage: file.damage }
}
