import { readFileSync } from 'node:fs'

/** An entry of passwd(5). */
export interface User {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** The entry of the system's users that a function selects. */
export function findUser(isWanted: (user: User) => boolean, passwd = '/etc/passwd'): User | undefined {
  let text = ''
  try {
    text = readFileSync(passwd, 'utf8')
  } catch {
    return undefined
  }
  return text
    .split('\n')
    .map((line) => {
      // name:password:UID:GID:comment:home:shell
      const [name = '', , uid, gid] = line.split(':')
      return { name, uid: Number(uid), gid: Number(gid) }
    })
    .find(isWanted)
}

/** `user alice (uid 1000)`, or `uid 1000` without a name. */
export function userText(uid: number): string {
  const user = findUser((each) => each.uid === uid)
  return user === undefined ? `uid ${uid}` : `user ${user.name} (uid ${uid})`
}

/** The user of this process. */
export function ownUserText(): string {
  return userText(process.geteuid?.() ?? 0)
}

/** Returns the problem and its fix if this user may not read a file. undefined for other errors. */
export function notReadable(error: unknown): { readonly found: string; readonly remedy: string } | undefined {
  const { code, path } = (error ?? {}) as NodeJS.ErrnoException
  if (code !== 'EACCES' || path === undefined) return undefined
  return {
    found: `${path} is not readable by ${ownUserText()}`,
    remedy: `chgrp ${process.getegid?.() ?? 0} ${path} && chmod g+r ${path}, and make its parent directories accessible to that user`,
  }
}
