import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { getRawAsset, isSea } from 'node:sea'
import { fileURLToPath } from 'node:url'
import { unpacked } from './unpack.ts'

/*
 * The parts of a released program: code of threads, files that it reads, addons. They are next to
 * the program, or inside the single executable. The sources name them by their paths in the
 * repository, in which bundle.ts has replaced the root by VIRTUAL_ROOT.
 */

/** Does not exist in any file system: a path below it always names a part. */
export const VIRTUAL_ROOT = '/$posture/'

/** The names of parts, by their files in the repository. */
export const PARTS: Readonly<Record<string, string>> = {
  'dist/collector/pipeline/capture-thread.js': 'capture-thread.cjs',
  'dist/api/thread.js': 'api-thread.cjs',
  'dist/console/thread.js': 'console-thread.cjs',
  'dist/deploy/release/embedded/compile-cache.js': 'compile-cache.cjs',
  'dist/dry-run/main.js': 'dry-run.cjs',
  'dist/engine/ingest/lane-worker.js': 'lane-worker.cjs',
  'dist/engine/ingest/socket-thread.js': 'socket-thread.cjs',
  'dist/engine/check/check-worker.js': 'check-worker.cjs',
  'node_modules/piscina/dist/worker.js': 'pool-worker.cjs',
  'dist/registry/catalog.json': 'catalog.json',
  'dist/engine/assess/frameworks.json': 'frameworks.json',
  'dist/console/assets.json': 'console-assets.json',
  'dist/console/common-passwords.txt': 'common-passwords.txt',
  'collector/selftest/golden.json': 'golden.json',
  'collector/selftest/golden.pcap': 'golden.pcap',
  'package.json': 'package.json',
}

declare const __dirname: string

/** The part that a path or URL in the sources names. undefined: a file of the system. */
export function partNamed(file: unknown): string | undefined {
  const path = file instanceof URL && file.protocol === 'file:' ? fileURLToPath(file) : file
  if (typeof path !== 'string' || !path.startsWith(VIRTUAL_ROOT)) return undefined
  const name = PARTS[path.slice(VIRTUAL_ROOT.length)]
  if (name !== undefined) return name
  // The error of any missing file.
  throw Object.assign(new Error(`ENOENT: no part ${path}`), { code: 'ENOENT' })
}

export function partBytes(name: string): Buffer {
  return isSea() ? Buffer.from(getRawAsset(name) as ArrayBuffer) : readFileSync(join(__dirname, name))
}

/** The path of a part: next to the program, or where it was extracted. */
export function partPath(name: string): string {
  return isSea() ? unpacked(name, partBytes(name)) : join(__dirname, name)
}

/** The embedded path of a path or directory in the sources. Directories contain all parts. */
export function installedPath(path: string): string {
  if (!path.startsWith(VIRTUAL_ROOT)) return path
  return path.endsWith('/') ? `${__dirname}/` : partPath(partNamed(path) ?? '')
}
