import { accessSync, constants, existsSync, lchownSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../engine/process/error-codes.ts'

export interface User {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** The collector's own user, which the packages make; or the one that every system has. */
const USERS = ['posture-collector', 'nobody']

/**
 * Who to become when started as root; undefined when not started as root, or to stay root.
 *
 * @param wanted `name`, `uid:gid`, or empty for the first of USERS that there is.
 * @throws Fault USAGE
 */
export function userToBecome(wanted: string, passwd = '/etc/passwd'): User | undefined {
  if (process.getuid?.() !== 0) return undefined
  if (wanted === '') return USERS.map((name) => findUser(name, passwd)).find((user) => user !== undefined)
  const user = findUser(wanted, passwd) ?? byNumber(wanted)
  if (user === undefined) {
    throw new Fault('USAGE', `--user: no user ${JSON.stringify(wanted)}; name one of /etc/passwd, or give uid:gid`)
  }
  return user.uid === 0 ? undefined : user
}

/**
 * Gives up root for good, in all threads (glibc and musl change all of them). What is open stays open; the outbox becomes the user's, so
 * that it can be opened again. False where this root may not become anybody, as in a container that keeps CAP_NET_RAW alone: it has little to
 * give up.
 *
 * @throws Fault STORE_UNWRITABLE where the user cannot reach the outbox.
 */
export function becomeUser({ name, uid, gid }: User, outbox: string): boolean {
  try {
    process.setgroups?.([gid])
    process.setgid?.(gid)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPERM') return false
    throw error
  }
  // Not what a link leads to: who owned the folder before may have put it there.
  for (const path of [outbox, join(outbox, 'data.mdb'), join(outbox, 'lock.mdb')]) {
    if (existsSync(path)) lchownSync(path, uid, gid)
  }
  process.setuid?.(uid)
  try {
    accessSync(outbox, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new Fault(
      'STORE_UNWRITABLE',
      `--outbox ${outbox}: user ${name} cannot reach it; name a directory that this user may write, or another --user`,
      { cause: error },
    )
  }
  return true
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
  return uid === undefined ? undefined : { name: text, uid: Number(uid), gid: Number(gid) }
}
