import { partPath } from './parts.ts'

/** Loads an addon that is part of the program. Throws the system loader's errors. */
export function loadAddon(name: string): unknown {
  const addon = { exports: {} }
  process.dlopen(addon, partPath(name))
  return addon.exports
}
