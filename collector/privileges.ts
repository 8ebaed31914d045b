import { existsSync, lchownSync, readFileSync } from 'node:fs'
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
 * Gives up root for good, in all threads (glibc and musl change all of them). What is open stays open; the store in
 * each of `folders` becomes the user's, so that it can be opened again.
 */
export function becomeUser({ uid, gid }: User, folders: readonly string[]): void {
  for (const folder of folders) {
    for (const path of [folder, join(folder, 'data.mdb'), join(folder, 'lock.mdb')]) {
      if (existsSync(path)) lchownSync(path, uid, gid)
    }
  }
  process.setgroups?.([gid])
  process.setgid?.(gid)
  process.setuid?.(uid)
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
