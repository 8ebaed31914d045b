import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { gunzipSync, gzipSync } from 'node:zlib'

/** As the end of the file's name says: gzip by Node, zstd (which Node 20 does not have) by its program. */
export function compressed(file: string, bytes: Buffer): Buffer {
  if (file.endsWith('.gz')) return gzipSync(bytes)
  if (file.endsWith('.zst')) return zstd(['-c'], bytes)
  return bytes
}

/** The content of a file that may be compressed. */
export function uncompressed(file: string): Buffer {
  const bytes = readFileSync(file)
  if (file.endsWith('.gz')) return gunzipSync(bytes)
  if (file.endsWith('.zst')) return zstd(['-dc'], bytes)
  return bytes
}

function zstd(parameters: readonly string[], input: Buffer): Buffer {
  const { status, stdout, stderr, error } = spawnSync('zstd', [...parameters, '-q'], { input })
  if (error !== undefined) throw new Error('zstd is needed: install the Debian package zstd', { cause: error })
  if (status !== 0) throw new Error(`zstd failed: ${stderr}`)
  return stdout
}
