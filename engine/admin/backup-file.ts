import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { Fault } from '../process/error-codes.ts'

/*
 * A backup file is LMDB's data file of one snapshot with a seal, so that every bit is verified
 * before LMDB maps the file: damaged or missing pages would crash the process.
 *
 *   offset  width  content
 *   0       n      LMDB's data file
 *   n       16     posture-backup-1, ASCII
 *   n + 16  32     SHA-256 of all bytes before
 */
const MARK = Buffer.from('posture-backup-1')
const HASH_BYTES = 32
const SEAL_BYTES = MARK.length + HASH_BYTES
const STEP_BYTES = 1024 * 1024

/** Receives the number of bytes read and the total. */
export type OnBytes = (bytes: number, bytesTotal: number) => void

/**
 * Appends the seal to LMDB's file and flushes the file to disk. Returns its size, or undefined if
 * `signal` is aborted first.
 */
export async function seal(path: string, onBytes: OnBytes, signal: AbortSignal): Promise<number | undefined> {
  const file = await open(path, 'r+')
  try {
    const { size } = await file.stat()
    const hash = createHash('sha256')
    const bytes = await readThrough(file, size, onBytes, signal, async (step) => {
      hash.update(step)
    })
    if (bytes === undefined) return undefined
    await file.write(Buffer.concat([MARK, hash.update(MARK).digest()]), 0, SEAL_BYTES, size)
    await file.sync()
    return size + SEAL_BYTES
  } finally {
    await file.close()
  }
}

/**
 * Copies the LMDB file out of a backup and flushes it to disk. Returns its size, or undefined if
 * `signal` is aborted first.
 *
 * @throws Fault BACKUP_FILE if the file is not a backup or is damaged; the copy is then unusable
 */
export async function unseal(
  path: string,
  target: string,
  onBytes: OnBytes,
  signal: AbortSignal,
): Promise<number | undefined> {
  const file = await open(path, 'r')
  try {
    const stat = await file.stat()
    const size = stat.size - SEAL_BYTES
    const found = Buffer.alloc(SEAL_BYTES)
    if (stat.isFile() && size > 0) await file.read(found, 0, SEAL_BYTES, size)
    if (!found.subarray(0, MARK.length).equals(MARK)) {
      throw new Fault('BACKUP_FILE', `${path}: not a complete backup of posture-admin. Name another file`)
    }
    const hash = createHash('sha256')
    const copy = await open(target, 'wx', 0o600)
    try {
      const bytes = await readThrough(file, size, onBytes, signal, async (step) => {
        hash.update(step)
        await writeAll(copy, step)
      })
      if (bytes === undefined) return undefined
      await copy.sync()
    } finally {
      await copy.close()
    }
    if (hash.update(MARK).digest().equals(found.subarray(MARK.length))) return size
    throw new Fault('BACKUP_FILE', `${path}: damaged: checksum mismatch. Name another backup`)
  } finally {
    await file.close()
  }
}

async function readThrough(
  file: FileHandle,
  size: number,
  onBytes: OnBytes,
  signal: AbortSignal,
  take: (step: Buffer) => Promise<void>,
): Promise<number | undefined> {
  const step = Buffer.allocUnsafe(STEP_BYTES)
  let at = 0
  while (at < size) {
    if (signal.aborted) return undefined
    const { bytesRead } = await file.read(step, 0, Math.min(STEP_BYTES, size - at), at)
    if (bytesRead === 0) return at
    await take(step.subarray(0, bytesRead))
    at += bytesRead
    onBytes(at, size)
  }
  return at
}

/** A write may be partial. */
async function writeAll(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten
}
