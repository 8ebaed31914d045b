import { createHash, type KeyObject, sign } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { copyFile, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { REPOSITORY } from './bundle.ts'
import { run } from './commands.ts'
import { CACHE, emptyFolder } from './npm-file.ts'

/** Identifies a release. */
export interface Release {
  readonly version: string
  /** The commit, and whether the sources were modified. */
  readonly commit: string
  /**
   * Time of the commit in seconds since 1970. All files get this time, so that builds are
   * reproducible (reproducible-builds.org).
   */
  readonly epochSeconds: number
}

/** @throws Error outside a git clone, because a release names its commit */
export async function releaseOfClone(): Promise<Release> {
  const { version } = JSON.parse(await readFile(join(REPOSITORY, 'package.json'), 'utf8')) as { version: string }
  const git = (...args: string[]) => run('git', args, { cwd: REPOSITORY })
  const [commit = '', time = ''] = (await git('log', '-1', '--format=%H %ct')).trim().split(' ')
  const changed = (await git('status', '--porcelain', '--untracked-files=no')).trim() !== ''
  return { version, commit: changed ? `${commit}-changed` : commit, epochSeconds: Number(time) }
}

/**
 * A temporary directory for building a file. Not next to the file, where an interrupted build would
 * leave it.
 */
export function workFolder(file: string): Promise<string> {
  return emptyFolder(join(CACHE, 'work', basename(file)))
}

/** Moves a file atomically, even from another file system. */
export async function moveFile(from: string, to: string): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await copyFile(from, `${to}.part`)
    await rename(`${to}.part`, to)
    await rm(from)
  }
}

export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/** Writes FILE.sha256 next to a file, for `sha256sum --check`. */
export async function writeChecksum(file: string): Promise<string> {
  const sum = `${file}.sha256`
  await writeFile(sum, `${await sha256Of(file)}  ${basename(file)}\n`)
  return sum
}

/**
 * Writes FILE.sig next to a file: its Ed25519 signature (RFC 8032), which `openssl pkeyutl -rawin`
 * verifies.
 */
export async function writeSignature(file: string, key: KeyObject): Promise<void> {
  await writeFile(`${file}.sig`, sign(null, await readFile(file), key))
}

/**
 * Packs a directory as a gzip-compressed tar archive. Its bytes depend only on the names, modes and
 * contents of the files, and on the release's time.
 */
export async function packFolder(folder: string, archive: string, { epochSeconds }: Release): Promise<void> {
  await run('tar', [
    ...['--create', '--sort=name', `--mtime=@${epochSeconds}`, '--owner=0', '--group=0', '--numeric-owner'],
    ...['--format=ustar', '--use-compress-program=gzip -n', '--file', archive],
    ...['--directory', join(folder, '..'), basename(folder)],
  ])
}
