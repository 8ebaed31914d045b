import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { copyFile, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { REPOSITORY } from './bundle.ts'
import { run } from './commands.ts'
import { CACHE, emptyFolder } from './npm-file.ts'

/** What every file of a release is stamped with. */
export interface Release {
  readonly version: string
  /** The commit that is built, and whether the sources were changed since. */
  readonly commit: string
  /** Seconds since 1970 of the commit: the time of every file, so that the same commit gives the same bytes (reproducible-builds.org). */
  readonly epochSeconds: number
}

/** @throws Error outside of a clone: a release says which commit it is made of. */
export async function releaseOfClone(): Promise<Release> {
  const { version } = JSON.parse(await readFile(join(REPOSITORY, 'package.json'), 'utf8')) as { version: string }
  const git = (...args: string[]) => run('git', args, { cwd: REPOSITORY })
  const [commit = '', time = ''] = (await git('log', '-1', '--format=%H %ct')).trim().split(' ')
  const changed = (await git('status', '--porcelain', '--untracked-files=no')).trim() !== ''
  return { version, commit: changed ? `${commit}-changed` : commit, epochSeconds: Number(time) }
}

/** A folder for what is on its way to a file: not beside it, where an interrupted build would leave it. */
export function workFolder(file: string): Promise<string> {
  return emptyFolder(join(CACHE, 'work', basename(file)))
}

/** Puts a file into its place, whole or not at all, from another file system, too. */
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

/** Writes FILE.sha256 beside a file, as `sha256sum --check` reads it. */
export async function writeChecksum(file: string): Promise<string> {
  const sum = `${file}.sha256`
  await writeFile(sum, `${await sha256Of(file)}  ${basename(file)}\n`)
  return sum
}

/** Packs a folder as a gzip-compressed tar archive whose bytes depend on nothing but the files' names, modes and contents, and the time. */
export async function packFolder(folder: string, archive: string, { epochSeconds }: Release): Promise<void> {
  await run('tar', [
    ...['--create', '--sort=name', `--mtime=@${epochSeconds}`, '--owner=0', '--group=0', '--numeric-owner'],
    ...['--format=ustar', '--use-compress-program=gzip -n', '--file', archive],
    ...['--directory', join(folder, '..'), basename(folder)],
  ])
}
