import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { makeDirectory } from '../../../engine/kernel/process/directory.ts'
import { Fault } from '../../../engine/kernel/process/error-codes.ts'

/**
 * Whether the file system that contains a path is mounted noexec, from the text of
 * /proc/self/mountinfo (proc(5)).
 */
export function mountedNoexec(path: string, mountinfo: string): boolean {
  let deepest = ''
  let noexec = false
  for (const line of mountinfo.split('\n')) {
    // 36 35 98:0 /root /mount/point rw,noexec shared:1 - ext4 /dev/sda1 rw
    const [, , , , escaped = '', options = ''] = line.split(' ')
    const point = escaped.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))
    if (point === '' || !isWithin(path, point)) continue
    // Of two mounts on one directory, the later one hides the earlier.
    if (point.length < deepest.length) continue
    deepest = point
    noexec = options.split(',').includes('noexec')
  }
  return noexec
}

function isWithin(path: string, folder: string): boolean {
  return folder === '/' || path === folder || path.startsWith(`${folder}/`)
}

/*
 * Extracts files of the single executable that the system's loader can only load from disk. Only
 * the current user and root may write to the directory or replace it, and an existing file is used
 * only if it equals the embedded one byte for byte.
 */

/** Names the only directory to be used. */
export const UNPACK_VARIABLE = 'POSTURE_UNPACK_DIR'
const OTHERS_WRITE = 0o022
/** In such a directory, only the owner of a file may rename it (inode(7)). */
const STICKY = 0o1000

/** Where root unpacks, and from where every user may load. */
const OF_ROOT = '/var/cache/posture-0'
const isRoot = process.getuid?.() === 0
const isShared = (directory: string): boolean => isRoot && directory === OF_ROOT

/**
 * Directories to try, in order: the operator's choice, systemd's, the user's cache, the system's;
 * for root the system's before the one in its home.
 */
function candidates(environment: NodeJS.ProcessEnv): string[] {
  const named = environment[UNPACK_VARIABLE]
  if (named !== undefined && named !== '') return [named]
  const bases = [
    environment['CACHE_DIRECTORY'],
    environment['XDG_CACHE_HOME'],
    ...(isRoot ? ['/var/cache'] : []),
    join(homeDirectory(), '.cache'),
    '/var/cache',
    environment['XDG_RUNTIME_DIR'],
    tmpdir(),
  ]
  return bases
    .filter((base) => base?.startsWith('/'))
    .map((base) => join(base as string, `posture-${process.getuid?.() ?? 0}`))
}

/** '' for a user without HOME whom the system does not know, as where there is no /etc/passwd. */
function homeDirectory(): string {
  try {
    return homedir()
  } catch {
    return ''
  }
}

/**
 * Returns the path of a file with these bytes.
 *
 * @throws Fault UNPACK_DENIED if no directory is writable and allows execution
 */
export function unpacked(name: string, bytes: Buffer): string {
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const file = `${sha256.slice(0, 16)}-${name}`
  if (!isRoot && !process.env[UNPACK_VARIABLE] && isInstalled(join(OF_ROOT, file), bytes)) return join(OF_ROOT, file)
  const refused: string[] = []
  for (const directory of candidates(process.env)) {
    try {
      return placed(join(ownDirectory(directory), file), bytes)
    } catch (error) {
      refused.push(`${directory}: ${reasonOf(error as NodeJS.ErrnoException)}`)
    }
  }
  throw new Fault(
    'UNPACK_DENIED',
    `no directory for the program's addons: ${refused.join('; ')}; set ${UNPACK_VARIABLE} to a directory that this user may write to and execute from`,
  )
}

/**
 * Whether root has unpacked the file for all users. A user without a directory that allows
 * execution, as services often are, can use no other.
 */
function isInstalled(path: string, bytes: Buffer): boolean {
  try {
    const directory = realpathSync(dirname(path))
    refuseForeign(directory)
    return statSync(directory).uid === 0 && !mountedNoexec(directory, mountTable()) && holds(path, bytes)
  } catch {
    return false
  }
}

/**
 * Creates the directory, or checks that only this user can write to it and that files in it can be
 * executed. Returns its path without symbolic links.
 */
function ownDirectory(directory: string): string {
  // Checked before the directory is created: another user's link could lead anywhere.
  refuseForeign(realpathSync(deepestThereIs(directory)))
  makeDirectory(directory)
  // Whatever the umask is.
  if (isShared(directory)) chmodSync(directory, 0o755)
  const real = realpathSync(directory)
  refuseForeign(real)
  const { uid, mode } = statSync(real)
  if (uid !== (process.getuid?.() ?? uid)) throw new Error('belongs to another user')
  if ((mode & OTHERS_WRITE) !== 0) throw new Error('other users may write to it')
  if (mountedNoexec(real, mountTable())) throw new Error('mounted noexec')
  return real
}

function deepestThereIs(path: string): string {
  return existsSync(path) ? path : deepestThereIs(dirname(path))
}

/** Rejects a path of which another user could replace a component. */
function refuseForeign(path: string): void {
  const own = process.getuid?.() ?? 0
  for (let part = path; ; part = dirname(part)) {
    const { uid, mode } = lstatSync(part)
    const where = part === path ? '' : `${part} `
    if (uid !== 0 && uid !== own) throw new Error(`${where}belongs to another user`)
    if ((mode & OTHERS_WRITE) !== 0 && (mode & STICKY) === 0)
      throw new Error(`other users may write to ${where.trim() || 'it'}`)
    if (part === dirname(part)) return
  }
}

/** Empty if /proc is not mounted. The loader then reports the error, less clearly. */
function mountTable(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return ''
  }
}

/**
 * An existing file is used only if it is identical. A new one is renamed into place, since other
 * processes may start at the same time.
 */
function placed(path: string, bytes: Buffer): string {
  if (holds(path, bytes)) return path
  const part = `${path}.${process.pid}.part`
  try {
    writeFileSync(part, bytes, { mode: 0o500, flag: 'wx' })
    if (isShared(dirname(path))) chmodSync(part, 0o555)
    renameSync(part, path)
  } catch (error) {
    rmSync(part, { force: true })
    throw error
  }
  if (!holds(path, bytes)) throw new Error(`${path} changed while it was written`)
  return path
}

function holds(path: string, bytes: Buffer): boolean {
  try {
    return lstatSync(path).isFile() && readFileSync(path).equals(bytes)
  } catch {
    return false
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'no permission',
  EPERM: 'no permission',
  EROFS: 'read-only',
  ENOSPC: 'full',
  EDQUOT: 'full',
  ENOTDIR: 'not a directory',
  EISDIR: 'is a directory',
  EEXIST: 'not a directory',
  ENOENT: 'not there',
}

function reasonOf(error: NodeJS.ErrnoException): string {
  return REASONS[error.code ?? ''] ?? error.message
}
