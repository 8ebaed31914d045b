import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { gunzipSync, gzipSync } from 'node:zlib'

/**
 * Compresses according to the file name: gzip with Node, zstd with the zstd program, since Node 20
 * has no zstd.
 */
export function compressed(file: string, bytes: Buffer): Buffer {
  if (file.endsWith('.gz')) return gzipSync(bytes)
  if (file.endsWith('.zst')) return zstd(['-c'], bytes)
  return bytes
}

/** The uncompressed content of a file. */
export function uncompressed(file: string): Buffer {
  const bytes = readFileSync(file)
  if (file.endsWith('.gz')) return gunzipSync(bytes)
  if (file.endsWith('.zst')) return zstd(['-dc'], bytes)
  return bytes
}

function zstd(parameters: readonly string[], input: Buffer): Buffer {
  const { status, stdout, stderr, error } = spawnSync('zstd', [...parameters, '-q'], { input })
  if (error !== undefined) throw new Error('zstd is not installed: install the Debian package zstd', { cause: error })
  if (status !== 0) throw new Error(`zstd failed: ${stderr}`)
  return stdout
}
