import { constants, existsSync, lchownSync, lstatSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { assertAccess, ENVIRONMENT_FILES, makeWritableDirectory } from '../engine/kernel/lmdb/file-access.ts'
import { asUser, becomeUser, type Ids, idsOf, userOn } from '../engine/kernel/process/become-user.ts'
import { LOCK_PREFIX } from '../engine/kernel/process/directory-lock.ts'
import { Fault } from '../engine/kernel/process/error-codes.ts'
import { findUser, type User } from '../engine/kernel/process/ownership.ts'
import { controlOf, ownerOf } from '../engine/kernel/process/path-owner.ts'
import { OUTBOX_IN_MEMORY, REGISTRY_FILE, REGISTRY_PART } from './outbox/outbox-store.ts'

/** Where root owns the outbox: the collector's own user, which the packages create, or `nobody`. */
const USERS = ['posture-collector', 'nobody']

/**
 * Returns the user to switch to when started as root. Undefined if not started as root, or if root
 * was requested.
 *
 * @param settings `user`: `name`, `uid:gid`, or empty for the user who controls the outbox, or the
 *   first of USERS that exists
 * @throws Fault USAGE
 */
export function userToBecome(
  { user: wanted, outbox }: { readonly user: string; readonly outbox: string },
  passwd = '/etc/passwd',
): User | undefined {
  if (process.getuid?.() !== 0) return undefined
  const named = (name: string): User | undefined => findUser((user) => user.name === name, passwd)
  if (wanted === '') {
    const control = outbox === OUTBOX_IN_MEMORY ? undefined : controlOf('--outbox', outbox, { isRead: true })
    // In a directory such as /tmp, anyone could have made the outbox.
    const owner = control?.isShared === true ? undefined : control?.owner
    if (owner === undefined) return USERS.map(named).find((user) => user !== undefined)
    const { uid, gid } = idsOf(owner)
    return { uid, gid, name: findUser((user) => user.uid === uid, passwd)?.name ?? `${uid}:${gid}` }
  }
  const user = named(wanted) ?? byNumber(wanted)
  if (user === undefined) {
    throw new Fault('USAGE', `--run-as: no user ${JSON.stringify(wanted)}; name one of /etc/passwd, or give uid:gid`)
  }
  if (user.uid === 0 && user.gid !== 0) {
    throw new Fault('USAGE', `--run-as: ${JSON.stringify(wanted)}: root with another group is root; name another user`)
  }
  return user.uid === 0 ? undefined : user
}

/**
 * Prepares the outbox for the user that the collector becomes when its source is open. Until then,
 * root uses the outbox with the rights of this user. undefined: this root may not change its user,
 * as in a container with few privileges, and stays root.
 *
 * @throws Fault STORE_UNWRITABLE if the user cannot access the outbox
 */
export function prepareOutbox(outbox: string, user: User): User | undefined {
  if (!mayBecome(user)) return undefined
  if (outbox === OUTBOX_IN_MEMORY) return user
  if (ownerOf('--outbox', outbox, { create: true, isUsed: true }) === undefined) {
    makeWritableDirectory(outbox, '--outbox')
    const directory = realpathSync(outbox)
    for (const name of readdirSync(directory).filter(isOutboxFile)) chownFile(join(directory, name), user)
    if (isGiven(directory)) lchownSync(directory, user.uid, user.gid)
  } else if (!existsSync(outbox)) asUser(user, () => makeWritableDirectory(outbox, '--outbox'))
  assertReaches(user, outbox)
  return user
}

/** The user to whom an existing outbox belongs. undefined: root, or this root may not change. */
export function ownerOfOutbox(outbox: string): Ids | undefined {
  const owner = outbox === OUTBOX_IN_MEMORY ? undefined : userOn('--outbox', outbox, { create: true, isUsed: true })
  return owner !== undefined && mayBecome(owner) ? owner : undefined
}

/** Whether this root may change its user. */
export function mayBecome(user: Ids): boolean {
  try {
    asUser(user, () => {})
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPERM') return false
    throw error
  }
}

/** Becomes the user, if this root may. */
export function dropRoot(user: Ids): void {
  if (mayBecome(user)) becomeUser(user)
}

const OUTBOX_FILES: readonly string[] = [...ENVIRONMENT_FILES, REGISTRY_FILE, REGISTRY_PART]

function isOutboxFile(name: string): boolean {
  return OUTBOX_FILES.includes(name) || name.startsWith(LOCK_PREFIX)
}

/** Whether root gives its directory to the user. One that has other files keeps its owner. */
function isGiven(directory: string): boolean {
  return readdirSync(directory).every(isOutboxFile)
}

/** In a directory of root, which only root can change. */
function chownFile(path: string, { uid, gid }: User): void {
  const status = lstatSync(path)
  if (status.uid === 0 && (status.isFile() || status.isSocket()) && status.nlink === 1) lchownSync(path, uid, gid)
}

/**
 * Whether prepareOutbox() will succeed, as far as root can check without a change.
 *
 * @throws Fault STORE_UNWRITABLE
 */
export function assertUsable(outbox: string, user: User): void {
  if (ownerOf('--outbox', outbox, { isUsed: true }) === undefined && isGiven(outbox)) return
  assertReaches(user, outbox)
}

function assertReaches(user: User, outbox: string): void {
  try {
    asUser(user, () => assertAccess(outbox, constants.R_OK | constants.W_OK | constants.X_OK))
  } catch (error) {
    throw new Fault(
      'STORE_UNWRITABLE',
      `--outbox ${outbox}: user ${user.name} cannot write there; name a directory of its own, give it that one ("chown ${user.name}"), or name another --run-as`,
      { cause: error },
    )
  }
}

function byNumber(text: string): User | undefined {
  const [, uid, gid] = /^(\d{1,10}):(\d{1,10})$/.exec(text) ?? []
  const numbers = { uid: Number(uid), gid: Number(gid) }
  // The system interprets the highest ID as "no change".
  return numbers.uid < ID_MAX && numbers.gid < ID_MAX ? { name: text, ...numbers } : undefined
}

const ID_MAX = 0xffff_ffff
