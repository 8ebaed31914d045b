import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

/** The user of the service, who has taken it over. */
export const SERVICE_USER = { uid: 1234, gid: 1234 } as const
const SECRET = 'of root'

/** Gives a directory with all its files to a user. */
export function giveTo({ uid, gid }: { readonly uid: number; readonly gid: number }, directory: string): void {
  lchownSync(directory, uid, gid)
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    lchownSync(join(directory, name), uid, gid)
  }
}

/** Files of root that a hostile user wants a program of root to change. */
export class FilesOfRoot {
  readonly directory: string
  readonly secret: string

  constructor(directory: string) {
    this.directory = directory
    this.secret = join(directory, 'secret')
    mkdirSync(directory, { mode: 0o755 })
    writeFileSync(this.secret, SECRET, { mode: 0o600 })
    for (const name of ['data.mdb', 'lock.mdb']) writeFileSync(join(directory, name), SECRET, { mode: 0o600 })
  }

  /** '' or what has changed. */
  get damage(): string {
    const names = readdirSync(this.directory).sort()
    if (names.join() !== 'data.mdb,lock.mdb,secret') return `files: ${names}`
    for (const name of names) {
      const file = join(this.directory, name)
      const { uid, mode, size } = lstatSync(file)
      if (uid !== 0 || (mode & 0o777) !== 0o600 || size !== SECRET.length || readFileSync(file, 'utf8') !== SECRET) {
        return `${name}: uid ${uid}, mode ${mode.toString(8)}, ${size} bytes`
      }
    }
    return ''
  }
}

/** What a user can put into a directory of an environment, to lead root elsewhere. */
export const TRAPS: readonly {
  readonly name: string
  /** Of a file in the directory, so that several traps can be set. */
  readonly file: boolean
  readonly set: (place: string, root: FilesOfRoot) => void
}[] = [
  {
    name: 'the lock is a link to a file of root',
    file: true,
    set: (place, { secret }) => replaceByLink(join(place, 'lock.mdb'), secret),
  },
  {
    name: 'the mutex is a link to a file of root that does not exist',
    file: true,
    set: (place, { directory }) => replaceByLink(join(place, 'mutex.mdb'), join(directory, 'created')),
  },
  {
    name: 'the directory is a link to a directory of root',
    file: false,
    set: (place, { directory }) => replaceByLink(place, directory),
  },
  ...[0o770, 0o1777].map((mode) => ({
    name: `the directory is root's with mode ${mode.toString(8)}, and the lock is a link`,
    file: false,
    set: (place: string, { secret }: FilesOfRoot) => {
      replaceByLink(join(place, 'lock.mdb'), secret)
      chownSync(join(place, '..'), 0, 0)
      chownSync(place, 0, SERVICE_USER.gid)
      chmodSync(place, mode)
    },
  })),
]

function replaceByLink(path: string, target: string): void {
  rmSync(path, { recursive: true, force: true })
  symlinkSync(target, path)
  lchownSync(path, SERVICE_USER.uid, SERVICE_USER.gid)
}
