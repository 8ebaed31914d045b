import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { REPOSITORY } from './bundle.ts'
import { run } from './commands.ts'
import type { NpmFile } from './targets.ts'

/** Caches inputs and intermediate results of releases between builds. */
export const CACHE = join(REPOSITORY, 'node_modules/.cache/release')

/**
 * Extracts an archive of the npm registry, once, and returns its directory.
 *
 * @throws Error if its hash is not the recorded one
 */
export async function npmFolder({ spec, integrity }: NpmFile): Promise<string> {
  const name = spec.replaceAll('/', '-').replaceAll('@', '-')
  const folder = join(CACHE, `${name}-${createHash('sha256').update(integrity).digest('hex').slice(0, 8)}`)
  if (existsSync(folder)) return join(folder, 'package')
  const download = await emptyFolder(`${folder}.download`)
  await run('npm', ['pack', '--silent', '--pack-destination', download, spec], { cwd: download })
  const [archive = ''] = await readdir(download)
  const found = await sha512(join(download, archive))
  if (found !== integrity) throw new Error(`${spec} has the hash ${found}, expected ${integrity}`)
  const part = await emptyFolder(`${folder}.part`)
  await run('tar', ['-xzf', join(download, archive), '-C', part, '--no-same-owner'])
  await rename(part, folder)
  await rm(download, { recursive: true })
  return join(folder, 'package')
}

export async function emptyFolder(folder: string): Promise<string> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  return folder
}

/** In the form of npm's `integrity`. */
async function sha512(file: string): Promise<string> {
  const hash = createHash('sha512')
  await pipeline(createReadStream(file), hash)
  return `sha512-${hash.digest('base64')}`
}
