import { Fault } from './error-codes.ts'
import { findUser, type User, userText } from './ownership.ts'
import { type Owner, ownerOf, type PathOptions } from './path-owner.ts'

/*
 * Root must not use paths in directories of another user: a link there could lead anywhere, and a
 * file there could take over the program that reads it.
 */

export type Ids = Pick<User, 'uid' | 'gid'>

/** Work that only root can do, of files that root has named: before it becomes another user. */
const WORK_OF_ROOT = new Set<(user: Ids) => void>()

/** Calls `work` before this process becomes another user. Returns a function that forgets it. */
export function beforeBecoming(work: (user: Ids) => void): () => void {
  WORK_OF_ROOT.add(work)
  return () => WORK_OF_ROOT.delete(work)
}

/**
 * Becomes a user permanently, in all threads (glibc and musl change all of them). Open files stay
 * open.
 *
 * @throws Error with the code EPERM if this root may not, as in some containers; EINVAL if the user
 *   namespace does not have the user
 */
export function becomeUser({ uid, gid }: Ids): void {
  for (const work of WORK_OF_ROOT) work({ uid, gid })
  const name = findUser((user) => user.uid === uid)?.name
  if (name === undefined) process.setgroups?.([gid])
  // Not in the types of Node.
  else (process as unknown as { initgroups(name: string, gid: number): void }).initgroups(name, gid)
  process.setgid?.(gid)
  process.setuid?.(uid)
}

/**
 * Run by root before it uses anything at the path: becomes the user who controls the path.
 *
 * @param setting names the path in errors
 * @throws Fault STORE_UNWRITABLE
 */
export function becomeOwner(setting: string, path: string, options?: PathOptions): void {
  const user = userOn(setting, path, { ...options, isUsed: true })
  if (user === undefined) return
  try {
    becomeUser(user)
  } catch (error) {
    throw notOwner(setting, path, user.uid, error)
  }
}

/** @throws Fault STORE_UNWRITABLE if this is root, and another user controls the path */
export function refuseRootElsewhere(setting: string, path: string, options?: PathOptions): void {
  const user = userOn(setting, path, { ...options, isUsed: true })
  if (user !== undefined) throw notOwner(setting, path, user.uid)
}

function notOwner(setting: string, path: string, uid: number, cause?: unknown): Fault {
  return new Fault(
    'STORE_UNWRITABLE',
    `${setting} ${path}: belongs to ${userText(uid)}, whose files root must not use; run this as that user`,
    { cause },
  )
}

/** Runs work that ends before it returns with the rights of the user who controls the path. */
export function asOwnerOf<T>(setting: string, path: string, work: () => T): T {
  const user = userOn(setting, path)
  return user === undefined ? work() : asUser(user, work)
}

/** Runs work that ends before it returns with the rights of a user. Only for root. */
export function asUser<T>({ uid, gid }: Ids, work: () => T): T {
  const [groups = [], group = 0] = [process.getgroups?.(), process.getegid?.()]
  process.setgroups?.([gid])
  process.setegid?.(gid)
  process.seteuid?.(uid)
  try {
    return work()
  } finally {
    process.seteuid?.(0)
    process.setegid?.(group)
    process.setgroups?.(groups)
  }
}

/**
 * The user who controls the path. undefined: root, or this process is not root.
 *
 * @throws Fault STORE_UNWRITABLE
 */
export function userOn(setting: string, path: string, options?: PathOptions): Ids | undefined {
  const owner = ownerOf(setting, path, options)
  return owner === undefined ? undefined : idsOf(owner)
}

export function idsOf(owner: Owner): Ids {
  // The group of a directory may be root's, which the user need not be in.
  const gid = findUser(({ uid }) => uid === owner.uid)?.gid ?? (owner.gid === 0 ? owner.uid : owner.gid)
  return { uid: owner.uid, gid }
}
