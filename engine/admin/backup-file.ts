import { createHash } from 'node:crypto'
import { closeSync, constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Fault, isFault } from '../kernel/process/error-codes.ts'
import { openInput } from '../kernel/process/input-file.ts'
import type { NewFile } from '../kernel/process/new-file.ts'

/*
 * A backup file is LMDB's data file of one snapshot with a seal, so that damage is found before
 * LMDB reads the file. The seal does not prove who wrote the file.
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

/** A backup that is open for reading. */
export interface OpenBackup {
  readonly path: string
  readonly file: FileHandle
}

/** @throws Fault BACKUP_FILE */
export async function openBackup(given: string): Promise<OpenBackup> {
  const path = resolve(given)
  try {
    const opened = openInput(path, { what: 'backup', code: 'BACKUP_FILE', isRegular: true })
    try {
      return { path, file: await open(`/proc/self/fd/${opened}`, constants.O_RDONLY | constants.O_NONBLOCK) }
    } finally {
      closeSync(opened)
    }
  } catch (error) {
    throw error instanceof Fault ? error : fileFault(error, path)
  }
}

/**
 * Copies LMDB's file to a backup, and seals it. Returns its size, or undefined if `signal` is
 * aborted first.
 */
export async function seal(
  path: string,
  backup: Pick<NewFile, 'write'>,
  onBytes: OnBytes,
  signal: AbortSignal,
): Promise<number | undefined> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const hash = createHash('sha256')
    const bytes = await readThrough(file, size, onBytes, signal, async (step) => {
      hash.update(step)
      backup.write(step)
    })
    if (bytes === undefined) return undefined
    backup.write(Buffer.concat([MARK, hash.update(MARK).digest()]))
    return size + SEAL_BYTES
  } finally {
    await file.close()
  }
}

/**
 * Copies the LMDB file out of a backup. Returns its size, or undefined if `signal` is aborted
 * first.
 *
 * @throws Fault BACKUP_FILE if the file is not a backup or is damaged; the copy is then unusable
 */
export async function unseal(
  { path, file }: OpenBackup,
  target: string,
  onBytes: OnBytes,
  signal: AbortSignal,
): Promise<number | undefined> {
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
  } finally {
    await copy.close()
  }
  if (hash.update(MARK).digest().equals(found.subarray(MARK.length))) return size
  throw new Fault('BACKUP_FILE', `${path}: damaged: checksum mismatch. Name another backup`)
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

/**
 * Converts a system error about a file to a Fault. Returns other errors unchanged. LMDB reports
 * such errors only as text.
 */
export function fileFault(error: unknown, path: string): unknown {
  const cause = isFault(error, 'BACKUP_FILE') ? (error.cause ?? error) : error
  const { code, message } = cause as NodeJS.ErrnoException
  if (code === 'ENOSPC' || /no space left/i.test(message)) return new Fault('STORE_FULL', `${path}: no space left`)
  if (code === 'EACCES' || code === 'EPERM' || /permission denied/i.test(message)) {
    return new Fault(
      'BACKUP_FILE',
      `${path}: permission denied. Run this as the owner of the file, or name another path`,
    )
  }
  if (code === 'EROFS') return new Fault('BACKUP_FILE', `${path}: the file system is read-only. Name another path`)
  if (code === 'ENOENT' || code === 'ENOTDIR') return new Fault('BACKUP_FILE', `${path}: no such file or directory`)
  if (code === 'EISDIR') return new Fault('BACKUP_FILE', `${path}: is a directory. Name a file`)
  return error
}
