import type * as Uws from 'uWebSockets.js'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

export type UwsLibrary = typeof Uws & { _cfg?: (option: string) => void }

/**
 * The package with binaries for newer versions of Node, which need glibc 2.38. Not installed by
 * default: it has 41 MB for all platforms, and only these versions use it.
 */
const NEWER_PACKAGE = '@btc-vision/uwebsockets.js'
const NEWER_VERSION = '20.57.0'
/**
 * SHA-256 of its binaries by process.versions.modules and process.arch. A third party built them,
 * so no others are loaded (docs/design/decisions.md).
 */
const NEWER_BINARIES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  // Node 24
  137: {
    x64: '98128405dba2fb608448e921a979530f70c946a2cc9889c15f2fa70c2d00ab05',
    arm64: '88618b30ddf6b2b62310db89f40a701616676352aac5e0f6184dd8ef876199ce',
  },
  // Node 25
  141: {
    x64: '813d788b347c6fd76b779d8932311ec05a044e612b4b83af220f16e6ea789683',
    arm64: '81d0186dd1549ed6a7f47e68e323573fc27d69d2920527654ce2dd993af2b0ec',
  },
}

/**
 * Loads uWebSockets.js for this version of Node.
 *
 * @throws Error if there is no binary for it, or not the reviewed one.
 */
export async function loadUws(): Promise<UwsLibrary> {
  const { modules } = process.versions
  const expected = NEWER_BINARIES[modules]?.[process.arch]
  if (expected === undefined) return (await import('uWebSockets.js')) as UwsLibrary
  const require = createRequire(import.meta.url)
  let folder: string
  try {
    folder = dirname(require.resolve(NEWER_PACKAGE))
  } catch (error) {
    const hint = `Node ${process.versions.node} needs: npm install --no-save ${NEWER_PACKAGE}@${NEWER_VERSION}`
    throw new Error(hint, { cause: error })
  }
  const file = join(folder, `uws_linux_${process.arch}_${modules}.node`)
  const found = createHash('sha256').update(readFileSync(file)).digest('hex')
  if (found !== expected) throw new Error(`${file}: the SHA-256 is ${found}, expected ${expected}`)
  // Without the package's own JavaScript, which adds nothing that is used here.
  return require(file) as UwsLibrary
}
