import {
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fstatSync,
  lchownSync,
  lstatSync,
  openSync,
  readFileSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'

/*
 * Ownership of files that root creates next to the files of another user. They must belong to that
 * user, or the user's program cannot open them later.
 */

export interface Owner {
  readonly uid: number
  readonly gid: number
}

/**
 * Returns the owner of the path, or of its nearest existing parent, if this process is root and the
 * owner is not. Otherwise undefined.
 */
export function otherOwner(path: string): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined
  const { uid, gid } = statSync(nearestAbove(path))
  return uid === 0 ? undefined : { uid, gid }
}

function nearestAbove(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestAbove(dirname(path))
}

/**
 * Creates an empty file that only the owner can access, unless the name exists. Errors are ignored:
 * opening the file reports them.
 */
export function createOwnedFile(owner: Owner, path: string): void {
  chown(owner, path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL)
}

/** Sets the owner of a directory that root has just created. */
export function chownDirectory(owner: Owner, path: string): void {
  chown(owner, path, constants.O_RDONLY | constants.O_DIRECTORY)
}

/**
 * Uses a descriptor: the owner of the directory could replace the new file between two calls by
 * path.
 */
function chown({ uid, gid }: Owner, path: string, flags: number): void {
  let descriptor: number
  try {
    descriptor = openSync(path, flags | constants.O_NOFOLLOW, 0o600)
  } catch {
    return
  }
  try {
    if (fstatSync(descriptor).uid === 0) fchownSync(descriptor, uid, gid)
  } catch {
    // Root in a container without CAP_CHOWN, or without a mapping for this uid.
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Sets the owner of a socket that root listens on. A socket cannot be opened, so only its type and
 * link count are checked.
 */
export function chownSocket({ uid, gid }: Owner, path: string): void {
  try {
    const status = lstatSync(path)
    if (status.uid === 0 && status.isSocket() && status.nlink === 1) lchownSync(path, uid, gid)
  } catch {
    // As in chown().
  }
}

/** `user alice (uid 1000)`, or `uid 1000` without a name. */
export function userText(uid: number, passwd = '/etc/passwd'): string {
  const name = nameOf(uid, passwd)
  return name === undefined ? `uid ${uid}` : `user ${name} (uid ${uid})`
}

/** The user of this process. */
export function ownUserText(): string {
  return userText(process.geteuid?.() ?? 0)
}

/** Returns the problem and its fix if this user may not read a file. undefined for other errors. */
export function notReadable(error: unknown): { readonly found: string; readonly remedy: string } | undefined {
  const { code, path } = error as NodeJS.ErrnoException
  if (code !== 'EACCES' || path === undefined) return undefined
  return {
    found: `${path} is not readable by ${ownUserText()}`,
    remedy: `chgrp ${process.getegid?.() ?? 0} ${path} && chmod g+r ${path}, and make its parent directories accessible to that user`,
  }
}

/** passwd(5): name:password:UID:GID:comment:home:shell */
function nameOf(uid: number, passwd: string): string | undefined {
  try {
    const lines = readFileSync(passwd, 'utf8').split('\n')
    return lines.map((line) => line.split(':')).find((fields) => fields[2] === String(uid))?.[0]
  } catch {
    return undefined
  }
}
