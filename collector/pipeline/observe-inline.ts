import type { ByteSource } from '../../engine/kernel/process/byte-source.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { allocatePool, BatchPool, resetPool } from '../batch/batch-pool.ts'
import { CaptureFile, feedFile } from '../capture/capture-file.ts'
import { type Round, RoundFiller } from '../capture/round.ts'
import { BatchDecoder, type DecodeOptions } from '../decode/decode-batch.ts'
import { type ObservedName, readRow, rowBytes, rowIsRefusal } from '../decode/name-rows.ts'
import { DEFAULT_PORTS } from '../decode/ports.ts'
import { BATCH_FRAME_BYTES, BATCH_LIST_FRAMES, BATCH_ROW_BYTES } from '../limits.ts'
import { RESOLVERS } from '../visibility.ts'
import { DecodeCounts } from './delivery.ts'

/** The bytes of one batch end in the middle of a record, which begins the next one. */
const BATCHES = 2

export interface InlineObservation {
  readonly counts: DecodeCounts
  /** Why the file ended early; undefined if it is intact. */
  readonly damage: string | undefined
}

export interface InlineReading {
  /** Called for each part of the file. */
  readonly onNames: (names: readonly ObservedName[]) => void
  readonly onProgress?: (bytesRead: number, bytesTotal: number) => void
}

/**
 * Observes the names in captures, one after the other, in the calling thread. Slower than observe()
 * for large files, but it starts no thread, needs 10 MB of memory and no native library.
 */
export class InlineObserver {
  readonly #shared = allocatePool(BATCHES, 1, {
    frameBytes: BATCH_FRAME_BYTES,
    rowBytes: BATCH_ROW_BYTES,
    listFrames: BATCH_LIST_FRAMES,
  })
  readonly #pool = new BatchPool(this.#shared)
  readonly #decoder: BatchDecoder

  constructor(options: DecodeOptions) {
    this.#decoder = new BatchDecoder(0, options)
  }

  /** Closes the file at its end. */
  async observe(file: CaptureFile, { onNames, onProgress }: InlineReading): Promise<InlineObservation> {
    resetPool(this.#shared)
    const [pool, decoder] = [this.#pool, this.#decoder]
    const counts = new DecodeCounts()
    const decode = (round: Round): void => {
      const batch = pool.batch(round.batch)
      const section = batch.lane(0)
      for (let done = false; !done; ) {
        done = decoder.decode(batch)
        counts.add(section)
        const names: ObservedName[] = []
        const end = section.rowsStart + section.run.rowBytes
        for (let at = section.rowsStart; at < end; at += rowBytes(batch.view, at))
          if (!rowIsRefusal(batch.view, at)) names.push(readRow(batch.view, batch.bytes, at))
        onNames(names)
      }
      pool.free(batch)
      onProgress?.(round.bytesRead, file.source.bytesTotal)
    }
    const filler = new RoundFiller(pool, { whenExhausted: 'wait', holdBack: false }, decode)
    try {
      await feedFile(file, pool, filler)
    } finally {
      file.close()
    }
    return { counts, damage: file.damage }
  }

  /** Ends the observation in progress. Names that were read are still delivered. */
  stop(): void {
    this.#pool.stop()
  }
}

/**
 * Observes every name of an untrusted capture.
 *
 * @throws Fault CAPTURE_FORMAT, CAPTURE_DAMAGED if the file has no valid beginning.
 */
export async function observeInline(
  source: ByteSource,
  onName: (name: ObservedName) => void,
): Promise<InlineObservation & { readonly format: 'pcap' | 'pcapng' }> {
  const file = await CaptureFile.of(source)
  const observer = new InlineObserver({
    trie: compileTrie([]),
    resolvers: compileTrie(RESOLVERS),
    everyName: true,
    ...DEFAULT_PORTS,
    loadBalancers: [],
  })
  const onNames = (names: readonly ObservedName[]): void => names.forEach(onName)
  return { format: file.format, ...(await observer.observe(file, { onNames })) }
}
