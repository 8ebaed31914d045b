import { closeSync, fsyncSync, openSync } from 'node:fs'

/** Flushes a directory, so that a rename in it survives a power failure. */
export function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
