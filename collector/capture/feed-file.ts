import type { BatchPool } from '../batch/batch-pool.ts'
import type { FrameBatch } from '../batch/frame-batch.ts'
import { STOP_CHECK_MS } from '../limits.ts'
import type { CaptureFile } from './capture-file.ts'
import type { RoundFiller } from './round.ts'

/**
 * Reads a capture file into batches. Each chunk is read directly into a batch's frames area, and
 * its records are listed in place. An incomplete record at the end of one batch is copied to the
 * start of the next.
 */
export async function feedFile(file: CaptureFile, pool: BatchPool, filler: RoundFiller): Promise<void> {
  const { reader, source } = file
  const watch = source.live ? setInterval(() => pool.stopped && file.stop(), STOP_CHECK_MS) : undefined
  let before: FrameBatch | undefined
  let end = 0
  for (let over = false; !over; ) {
    const batch = filler.begin()
    if (batch === undefined) break
    const start = batch.framesStart
    const left = before === undefined ? 0 : end - reader.at
    // Lanes may still read the previous batch. Reading it here is safe: only this thread writes
    // frames areas.
    if (before !== undefined) batch.bytes.set(before.bytes.subarray(reader.at, end), start)
    file.moved(start)
    end = await file.fill(batch.bytes, start + left, batch.framesEnd)
    before = batch
    over = !listRecords(file, batch, end, filler) && (file.ended || reader.damage !== undefined)
    // Bytes from a pipe are flushed at once.
    if (over ? pool.stopped : true) filler.flush(source.bytesRead)
  }
  clearInterval(watch)
  if (pool.stopped) return filler.abandon()
  file.finish(end)
  filler.finish(source.bytesRead)
}

/**
 * Lists the complete records before `end`. Returns true if the batch is full and there may be more
 * records.
 */
function listRecords({ reader }: CaptureFile, batch: FrameBatch, end: number, filler: RoundFiller): boolean {
  for (let freeEntries = batch.freeEntries; freeEntries > 0; freeEntries--) {
    if (!reader.next(batch.view, end)) return false
    filler.list(batch, reader.offset, reader.captured, reader.seconds, reader.nanoseconds, reader.linkType)
  }
  return true
}
