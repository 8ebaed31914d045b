import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openRecord, RECORD_HEADER_BYTES, sealRecord } from '../../engine/kernel/lmdb/record.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { logFailure } from '../../engine/kernel/process/failure.ts'
import type { Logger } from '../../engine/kernel/process/log.ts'
import { monotonicMs, RATE_ROWS_MAX, RateLimit, type RateRow, REQUESTS_PER_WINDOW, WINDOW_MS } from './rate-limit.ts'

/*
 * The counters of the rate limit during a restart of the service, so that a restart gives no key
 * another 60 requests. The service writes them when it stops, and reads and removes them when it
 * starts. A record of engine/kernel/lmdb/record.ts, numbers little-endian:
 *
 *   boot       36 bytes   id of the boot to which the monotonic time refers; zeros if unknown
 *   monotonic  f64        time of writing, in ms since that boot
 *   wall       f64        the same time, in ms since 1970
 *   per table  u32        rows, then for each:
 *     bucket   u16        index of the row in the table
 *     row      u8
 *     count    u8         requests in the window
 *     hash     2 x i32    of the key
 *     ages     u16 each   age of each request at the time of writing, in ms, oldest first
 */
const FILE = 'rate-limits'
const RECORD_VERSION = 1
const BOOT_BYTES = 36
const HEADER_BYTES = BOOT_BYTES + 16
const ROW_BYTES = 12
const TABLE_BYTES_MAX = 4 + RATE_ROWS_MAX * (ROW_BYTES + 2 * REQUESTS_PER_WINDOW)
const FILE_BYTES_MAX = RECORD_HEADER_BYTES + HEADER_BYTES + 2 * TABLE_BYTES_MAX

/** Clocks that give the time between two runs. */
export interface Times {
  /** Id of the boot at which monotonicMs begins; '' if unknown. */
  readonly boot: string
  readonly monotonicMs: number
  readonly wallMs: number
}

/**
 * The clocks of the system. The monotonic clock advances while no service runs, and is never set.
 */
function systemTimes(): Times {
  let boot = ''
  try {
    boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  } catch {
    // Not Linux, or not readable in the container.
  }
  return { boot: boot.length === BOOT_BYTES ? boot : '', monotonicMs: monotonicMs(), wallMs: Date.now() }
}

/**
 * Writes the counters of the tables into a file next to the store. An error is only logged, because
 * it must not prevent the service from stopping.
 */
export function persistRates(
  directory: string,
  tables: readonly SharedArrayBuffer[],
  log: Logger,
  now = systemTimes(),
): void {
  const file = join(directory, FILE)
  try {
    const header = Buffer.alloc(HEADER_BYTES)
    header.write(now.boot, 'latin1')
    header.writeDoubleLE(now.monotonicMs, BOOT_BYTES)
    header.writeDoubleLE(now.wallMs, BOOT_BYTES + 8)
    const packed = tables.flatMap((table) => packTable(table, now.monotonicMs))
    writeFileSync(`${file}.new`, sealRecord(RECORD_VERSION, Buffer.concat([header, ...packed])), { mode: 0o600 })
    renameSync(`${file}.new`, file)
  } catch (error) {
    rmSync(`${file}.new`, { force: true })
    logLost(log, error)
  }
}

/**
 * Reads the file of persistRates into unused tables, and removes the file. Skips requests that no
 * longer count.
 */
export function resumeRates(
  directory: string,
  tables: readonly SharedArrayBuffer[],
  log: Logger,
  now = systemTimes(),
): void {
  const file = join(directory, FILE)
  try {
    const bytes = statSync(file, { throwIfNoEntry: false })?.size
    if (bytes === undefined) return
    if (bytes > FILE_BYTES_MAX) {
      throw new Fault('STORE_DAMAGED', `${file}: ${bytes} bytes, expected at most ${FILE_BYTES_MAX}`)
    }
    const payload = openRecord(readFileSync(file), RECORD_VERSION, file)
    rmSync(file)
    const elapsedMs =
      payload.toString('latin1', 0, BOOT_BYTES) === now.boot
        ? now.monotonicMs - payload.readDoubleLE(BOOT_BYTES)
        : // If the clock was set back, the elapsed time counts as zero.
          Math.max(0, now.wallMs - payload.readDoubleLE(BOOT_BYTES + 8))
    let at = HEADER_BYTES
    for (const table of tables) at = unpackTable(payload, at, table, now.monotonicMs, elapsedMs)
  } catch (error) {
    rmSync(file, { force: true })
    logLost(log, error)
  }
}

/** A damaged file and an error of the file system are expected. */
function logLost(log: Logger, error: unknown): void {
  const lost = 'the counts of the rate limit are lost'
  if ((error as NodeJS.ErrnoException).syscall === undefined) logFailure(log, error, lost, { level: 'warn' })
  else log.warn({ reason: (error as Error).message }, lost)
}

function packTable(table: SharedArrayBuffer, nowMs: number): Buffer[] {
  const rows = Array.from(new RateLimit(table, () => nowMs).rows(), packRow)
  return [Buffer.from(Uint32Array.of(rows.length).buffer), ...rows]
}

function packRow({ bucket, row, high, low, agesMs }: RateRow): Buffer {
  const bytes = Buffer.alloc(ROW_BYTES + 2 * agesMs.length)
  bytes.writeUInt16LE(bucket, 0)
  bytes.writeUInt8(row, 2)
  bytes.writeUInt8(agesMs.length, 3)
  bytes.writeInt32LE(high, 4)
  bytes.writeInt32LE(low, 8)
  // Rounded down, so that a request leaves the window slightly late, and never early.
  for (const [index, ageMs] of agesMs.entries()) bytes.writeUInt16LE(Math.floor(ageMs), ROW_BYTES + 2 * index)
  return bytes
}

/** Returns the offset of the next table. */
function unpackTable(bytes: Buffer, start: number, table: SharedArrayBuffer, nowMs: number, elapsedMs: number): number {
  const limit = new RateLimit(table, () => nowMs)
  let at = start + 4
  for (let left = bytes.readUInt32LE(start); left > 0; left--) {
    const count = bytes.readUInt8(at + 3)
    const agesMs: number[] = []
    for (let index = 0; index < count; index++) {
      const ageMs = bytes.readUInt16LE(at + ROW_BYTES + 2 * index) + elapsedMs
      if (ageMs < WINDOW_MS) agesMs.push(ageMs)
    }
    const [bucket, row] = [bytes.readUInt16LE(at), bytes.readUInt8(at + 2)]
    if (agesMs.length > 0) {
      limit.put({ bucket, row, high: bytes.readInt32LE(at + 4), low: bytes.readInt32LE(at + 8), agesMs })
    }
    at += ROW_BYTES + 2 * count
  }
  return at
}
