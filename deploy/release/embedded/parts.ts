import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { getRawAsset, isSea } from 'node:sea'
import { fileURLToPath } from 'node:url'
import { unpacked } from './unpack.ts'

/*
 * The parts of a released program: the code of each thread, the files that it reads, its addons. They lie beside the program, or inside the
 * single executable. The sources name them as they lie in the repository; bundle.ts has put VIRTUAL_ROOT for the repository's folder.
 */

/** No file system has it: a name below it is always a part. */
export const VIRTUAL_ROOT = '/$posture/'

/** For each file of the repository that is a part: its name in a release. */
export const PARTS: Readonly<Record<string, string>> = {
  'dist/collector/pipeline/capture-thread.js': 'capture-thread.cjs',
  'dist/api/thread.js': 'api-thread.cjs',
  'dist/console/thread.js': 'console-thread.cjs',
  'dist/engine/ingest/lane-thread.js': 'lane-thread.cjs',
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

/** The part that a path or URL of the sources names, or undefined where it names a file of the system. */
export function partNamed(file: unknown): string | undefined {
  const path = file instanceof URL && file.protocol === 'file:' ? fileURLToPath(file) : file
  if (typeof path !== 'string' || !path.startsWith(VIRTUAL_ROOT)) return undefined
  const name = PARTS[path.slice(VIRTUAL_ROOT.length)]
  if (name !== undefined) return name
  // As for any file that is not there.
  throw Object.assign(new Error(`ENOENT: no part ${path}`), { code: 'ENOENT' })
}

export function partBytes(name: string): Buffer {
  return isSea() ? Buffer.from(getRawAsset(name) as ArrayBuffer) : readFileSync(join(__dirname, name))
}

/** A path of the part: beside the program, or where it was unpacked to. */
export function partPath(name: string): string {
  return isSea() ? unpacked(name, partBytes(name)) : join(__dirname, name)
}
