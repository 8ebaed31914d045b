import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { REPOSITORY } from './bundle.ts'
import { run } from './commands.ts'
import type { NpmFile } from './targets.ts'

/** What releases are made from and of is kept here between builds. */
export const CACHE = join(REPOSITORY, 'node_modules/.cache/release')

/**
 * Unpacks an archive of the npm registry, once, and gives its folder.
 *
 * @throws Error where its bytes are not those that were looked at.
 */
export async function npmFolder({ spec, integrity }: NpmFile): Promise<string> {
  const name = spec.replaceAll('/', '-').replaceAll('@', '-')
  const folder = join(CACHE, `${name}-${createHash('sha256').update(integrity).digest('hex').slice(0, 8)}`)
  if (existsSync(folder)) return join(folder, 'package')
  const download = await emptyFolder(`${folder}.download`)
  await run('npm', ['pack', '--silent', '--pack-destination', download, spec], { cwd: download })
  const [archive = ''] = await readdir(download)
  const found = await sha512(join(download, archive))
  if (found !== integrity) throw new Error(`${spec} is not the archive that was looked at: ${found}, not ${integrity}`)
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
