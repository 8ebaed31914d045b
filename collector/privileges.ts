import {
  accessSync,
  constants,
  lchownSync,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { ENVIRONMENT_FILES } from '../engine/lmdb/file-access.ts'
import { LOCK_PREFIX } from '../engine/process/directory-lock.ts'
import { Fault } from '../engine/process/error-codes.ts'
import { OUTBOX_IN_MEMORY, REGISTRY_FILE, REGISTRY_PART } from './outbox/outbox-limits.ts'

export interface User {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** The collector's own user, which the packages create, or the one that every system has. */
const USERS = ['posture-collector', 'nobody']

/**
 * Returns the user to switch to when started as root. Undefined if not started as root, or if root
 * was requested.
 *
 * @param wanted `name`, `uid:gid`, or empty for the first of USERS that exists.
 * @throws Fault USAGE
 */
export function userToBecome(wanted: string, passwd = '/etc/passwd'): User | undefined {
  if (process.getuid?.() !== 0) return undefined
  if (wanted === '') return USERS.map((name) => findUser(name, passwd)).find((user) => user !== undefined)
  const user = findUser(wanted, passwd) ?? byNumber(wanted)
  if (user === undefined) {
    throw new Fault('USAGE', `--user: no user ${JSON.stringify(wanted)}; name one of /etc/passwd, or give uid:gid`)
  }
  if (user.uid === 0 && user.gid !== 0) {
    throw new Fault('USAGE', `--user: ${JSON.stringify(wanted)}: root with another group is root; name another user`)
  }
  return user.uid === 0 ? undefined : user
}

/**
 * Drops root permanently, in all threads (glibc and musl change all of them). Open files stay open.
 * The outbox's files are given to the user so that they can be opened again, and also its directory
 * if it contains nothing else. Returns false if this root may not change its user, as in a
 * container that keeps only CAP_NET_RAW and has few privileges to drop.
 *
 * @throws Fault STORE_UNWRITABLE if the user cannot access the outbox.
 */
export function becomeUser(user: User, outbox: string): boolean {
  const inMemory = outbox === OUTBOX_IN_MEMORY
  const isUser = dropRoot(user, () => {
    if (!inMemory) chownOutbox(realpathSync(outbox), user)
  })
  if (isUser && !inMemory) assertReaches(user, outbox)
  return isUser
}

/** The same without an outbox. `lastAsRoot` runs after the groups were changed. */
export function dropRoot({ uid, gid }: User, lastAsRoot = (): void => {}): boolean {
  try {
    process.setgroups?.([gid])
    process.setgid?.(gid)
    lastAsRoot()
    process.setuid?.(uid)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPERM') return false
    throw error
  }
  return true
}

const OUTBOX_FILES: readonly string[] = [...ENVIRONMENT_FILES, REGISTRY_FILE, REGISTRY_PART]

function chownOutbox(directory: string, { uid, gid }: User): void {
  for (const name of readdirSync(directory).filter(isOutboxFile)) chownFile(join(directory, name), uid, gid)
  if (belongsToRoot(directory)) lchownSync(directory, uid, gid)
}

/** A directory shared with other files keeps its owner. */
function belongsToRoot(directory: string): boolean {
  return lstatSync(directory).uid === 0 && readdirSync(directory).every(isOutboxFile)
}

function isOutboxFile(name: string): boolean {
  return OUTBOX_FILES.includes(name) || name.startsWith(LOCK_PREFIX)
}

/**
 * Whether becomeUser() will give the user access to this directory, as far as root can check
 * without a change.
 */
export function canAccess(outbox: string, { uid, gid }: User): boolean {
  const directory = realpathSync(outbox)
  const status = statSync(directory)
  if (belongsToRoot(directory) || status.uid === uid) return true
  const all = status.gid === gid ? 0o070 : 0o007
  return (status.mode & all) === all
}

/** Does not follow a link, which the directory's previous owner may have created. */
function chownFile(path: string, uid: number, gid: number): void {
  const status = lstatSync(path)
  if (status.uid === 0 && (status.isFile() || status.isSocket()) && status.nlink === 1) lchownSync(path, uid, gid)
}

/** @throws Fault STORE_UNWRITABLE */
function assertReaches({ name }: User, outbox: string): void {
  try {
    accessSync(outbox, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    throw unreachable(outbox, name, { cause: error })
  }
}

/** Returns the Fault for an outbox that the user cannot write. */
export function unreachable(outbox: string, name: string, options?: ErrorOptions): Fault {
  return new Fault(
    'STORE_UNWRITABLE',
    `--outbox ${outbox}: user ${name} cannot write there; name a directory of its own, give it that one ("chown ${name}"), or name another --user`,
    options,
  )
}

/** passwd(5): name:password:UID:GID:comment:home:shell */
function findUser(name: string, passwd: string): User | undefined {
  let text = ''
  try {
    text = readFileSync(passwd, 'utf8')
  } catch {
    return undefined
  }
  const fields = text
    .split('\n')
    .map((line) => line.split(':'))
    .find(([user]) => user === name)
  return fields === undefined ? undefined : { name, uid: Number(fields[2]), gid: Number(fields[3]) }
}

function byNumber(text: string): User | undefined {
  const [, uid, gid] = /^(\d{1,10}):(\d{1,10})$/.exec(text) ?? []
  const numbers = { uid: Number(uid), gid: Number(gid) }
  // The system interprets the highest ID as "no change".
  return numbers.uid < ID_MAX && numbers.gid < ID_MAX ? { name: text, ...numbers } : undefined
}

const ID_MAX = 0xffff_ffff
