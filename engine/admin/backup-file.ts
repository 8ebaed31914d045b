import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { Fault } from '../process/error-codes.ts'

/*
 * A backup is LMDB's file of one snapshot, and behind it a seal, so that every bit of it is checked before LMDB maps it: pages that are wrong or missing
 * would end the process.
 *
 *   offset  width  what
 *   0       n      LMDB's file
 *   n       16     posture-backup-1, ASCII
 *   n + 16  32     SHA-256 of all before
 */
const MARK = Buffer.from('posture-backup-1')
const HASH_BYTES = 32
const SEAL_BYTES = MARK.length + HASH_BYTES
const STEP_BYTES = 1024 * 1024

/** Told how many bytes were read, of how many. */
export type OnBytes = (bytes: number, bytesTotal: number) => void

/** Puts the seal behind LMDB's file and waits until all of it is on disk. Answers its size, or undefined where `givenUp` was aborted. */
export async function seal(path: string, onBytes: OnBytes, givenUp: AbortSignal): Promise<number | undefined> {
  const file = await open(path, 'r+')
  try {
    const { size } = await file.stat()
    const hash = createHash('sha256')
    const bytes = await readThrough(file, size, onBytes, givenUp, async (step) => {
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
 * Copies what is in a backup, and waits until it is on disk. Answers its size, or undefined where `givenUp` was aborted.
 *
 * @throws Fault BACKUP_FILE where it is none or is damaged; then the copy is good for nothing.
 */
export async function unseal(
  path: string,
  target: string,
  onBytes: OnBytes,
  givenUp: AbortSignal,
): Promise<number | undefined> {
  const file = await open(path, 'r')
  try {
    const stat = await file.stat()
    const size = stat.size - SEAL_BYTES
    const found = Buffer.alloc(SEAL_BYTES)
    if (stat.isFile() && size > 0) await file.read(found, 0, SEAL_BYTES, size)
    if (!found.subarray(0, MARK.length).equals(MARK)) {
      throw new Fault('BACKUP_FILE', `${path}: not a whole file of posture-admin backup; name another one`)
    }
    const hash = createHash('sha256')
    const copy = await open(target, 'wx', 0o600)
    try {
      const bytes = await readThrough(file, size, onBytes, givenUp, async (step) => {
        hash.update(step)
        await writeAll(copy, step)
      })
      if (bytes === undefined) return undefined
      await copy.sync()
    } finally {
      await copy.close()
    }
    if (hash.update(MARK).digest().equals(found.subarray(MARK.length))) return size
    throw new Fault('BACKUP_FILE', `${path}: damaged, its bytes are not those that were written; name another backup`)
  } finally {
    await file.close()
  }
}

async function readThrough(
  file: FileHandle,
  size: number,
  onBytes: OnBytes,
  givenUp: AbortSignal,
  take: (step: Buffer) => Promise<void>,
): Promise<number | undefined> {
  const step = Buffer.allocUnsafe(STEP_BYTES)
  let at = 0
  while (at < size) {
    if (givenUp.aborted) return undefined
    const { bytesRead } = await file.read(step, 0, Math.min(STEP_BYTES, size - at), at)
    if (bytesRead === 0) return at
    await take(step.subarray(0, bytesRead))
    at += bytesRead
    onBytes(at, size)
  }
  return at
}

/** A write may take only a part. */
async function writeAll(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten
}
