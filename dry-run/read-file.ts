import { isCapture, otherFormat } from '../collector/capture/capture-file.ts'
import { LOG_FILE } from '../engine/ingest/read-log.ts'
import { type ByteSource, WithHead } from '../engine/process/byte-source.ts'
import { decompressedIfNeeded, readHead } from '../engine/process/decompressed-bytes.ts'
import { Fault } from '../engine/process/error-codes.ts'
import type { Matcher } from '../registry/match.ts'
import { LimitedBytes } from './limited-bytes.ts'
import { DECOMPRESSED_BYTES_MAX, READ_CPU_MS_MAX } from './limits.ts'
import { readCapture } from './read-capture.ts'
import { readLog } from './read-log.ts'
import type { FileReport } from './report.ts'

/** Enough to detect the format. */
const HEAD_BYTES = 16

export interface ReadFileOptions {
  readonly matcher: Matcher
  readonly windowStartMs: number
  /** Replace the limits in tests. */
  readonly bytesMax?: number
  readonly cpuMsMax?: number
}

/** Reads a capture or a log, compressed or not, and reports what would be found. */
export async function readFile(source: ByteSource, options: ReadFileOptions): Promise<FileReport> {
  const { matcher, windowStartMs, bytesMax = DECOMPRESSED_BYTES_MAX, cpuMsMax = READ_CPU_MS_MAX } = options
  try {
    const { source: decompressed, compression = 'none' } = await decompressedIfNeeded(source, LOG_FILE)
    const limited = new LimitedBytes(decompressed, bytesMax, cpuMsMax)
    const head = await readHead(limited, HEAD_BYTES)
    if (head.length === 0) return { kind: 'refused', reason: 'The file is empty' }
    const other = otherFormat(head)
    if (other !== undefined) return { kind: 'refused', reason: `The file looks like ${other.format}: ${other.remedy}` }
    const whole = new WithHead(limited, head)
    const report = isCapture(head) ? await readCapture(whole, matcher) : await readLog(whole, matcher, windowStartMs)
    const { bytes, ended } = limited
    // A file that a limit has truncated ends within a record.
    return { ...report, damage: ended === 'complete' ? report.damage : '', compression, bytes, ended }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { kind: 'refused', reason: error.message }
  }
}
