import * as fs from 'node:fs'
import { partBytes, partNamed, partPath } from './parts.ts'

/** Replaces node:fs in a release: files that ship with the program are parts. */
export * from 'node:fs'

export const readFileSync = ((file: fs.PathOrFileDescriptor, options?: BufferEncoding | null) => {
  const part = partNamed(file)
  if (part === undefined) return fs.readFileSync(file, options)
  const bytes = partBytes(part)
  return typeof options === 'string' ? bytes.toString(options) : bytes
}) as typeof fs.readFileSync

export const openSync: typeof fs.openSync = (file, flags, mode) => {
  const part = partNamed(file)
  return fs.openSync(part === undefined ? file : partPath(part), flags, mode)
}
