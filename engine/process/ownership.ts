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
 * Root looks after what belongs to others: what it makes beside their files must be theirs, or their program cannot open it afterwards.
 */

export interface Owner {
  readonly uid: number
  readonly gid: number
}

/** Whose the path is, or the nearest one above that there is, where this is root and it is another user's; otherwise undefined. */
export function otherOwner(path: string): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined
  const { uid, gid } = statSync(nearestAbove(path))
  return uid === 0 ? undefined : { uid, gid }
}

function nearestAbove(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestAbove(dirname(path))
}

/**
 * Makes an empty file that is the owner's alone, unless something has its name. Where that cannot be done nothing is said: who opens it finds
 * out what is wrong.
 */
export function makeFileOf(owner: Owner, path: string): void {
  give(owner, path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL)
}

/** Gives a directory that root has just made. */
export function giveDirectory(owner: Owner, path: string): void {
  give(owner, path, constants.O_RDONLY | constants.O_DIRECTORY)
}

/** By a descriptor: whose the directory is may put something else into the place of what root has made there. */
function give({ uid, gid }: Owner, path: string, flags: number): void {
  let descriptor: number
  try {
    descriptor = openSync(path, flags | constants.O_NOFOLLOW, 0o600)
  } catch {
    return
  }
  try {
    if (fstatSync(descriptor).uid === 0) fchownSync(descriptor, uid, gid)
  } catch {
    // Root of a container without CAP_CHOWN, or of whom this owner has no number.
  } finally {
    closeSync(descriptor)
  }
}

/** Gives a socket that root listens on. It cannot be opened, so that only its kind and its names are looked at. */
export function giveSocket({ uid, gid }: Owner, path: string): void {
  try {
    const status = lstatSync(path)
    if (status.uid === 0 && status.isSocket() && status.nlink === 1) lchownSync(path, uid, gid)
  } catch {
    // As above.
  }
}

/** `user alice (uid 1000)`, or `uid 1000` for a number without a name. */
export function userText(uid: number, passwd = '/etc/passwd'): string {
  const name = nameOf(uid, passwd)
  return name === undefined ? `uid ${uid}` : `user ${name} (uid ${uid})`
}

/** This process's. */
export function ownUserText(): string {
  return userText(process.geteuid?.() ?? 0)
}

/** What is wrong and what to do where this user may not read a file; undefined for another error. */
export function notReadable(error: unknown): { readonly found: string; readonly remedy: string } | undefined {
  const { code, path } = error as NodeJS.ErrnoException
  if (code !== 'EACCES' || path === undefined) return undefined
  return {
    found: `${path} is not readable for ${ownUserText()}`,
    remedy: `chgrp ${process.getegid?.() ?? 0} ${path} && chmod g+r ${path}, and let that user enter the directories above it`,
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
