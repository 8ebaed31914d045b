import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { RawRequest, RawSource } from './uws-request.ts'
import type { RawResponse } from './uws-response.ts'

/** The parts of uWebSockets.js that are used. */
export interface UwsLibrary {
  App(): UwsApp
  SSLApp(options: Readonly<Record<'key_file_name' | 'cert_file_name' | 'ssl_ciphers', string>>): UwsApp
  us_listen_socket_close(socket: UwsListenSocket): void
  us_socket_local_port(socket: UwsListenSocket): number
  _cfg(option: string): void
}

export interface UwsApp {
  filter(onConnection: (response: UwsRawResponse, change: number) => void): unknown
  get(path: string, handler: (response: UwsRawResponse, request: UwsRawRequest) => void): unknown
  any(path: string, handler: (response: UwsRawResponse, request: UwsRawRequest) => void): unknown
  /** `port` is a free one for 0. */
  listen(address: string, port: number, onListening: (socket: UwsListenSocket | false) => void): unknown
  close(): unknown
}

/** Opaque. */
export type UwsListenSocket = object

export type UwsRawResponse = RawResponse & RawSource

export interface UwsRawRequest extends RawRequest {
  getCaseSensitiveMethod(): string
  getUrl(): string
}

/**
 * Not installed by default: the package has 116 MB for all platforms, its binaries need glibc 2.38,
 * and node:http answers the same (docs/design/decisions.md).
 */
const PACKAGE = '@btc-vision/uwebsockets.js'
export const INSTALL_UWS = `npm install --no-save ${PACKAGE}@20.57.0`

/**
 * SHA-256 of the package's binaries for Linux by process.versions.modules and process.arch. A third
 * party built them, so no others are loaded.
 */
export const UWS_BINARIES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  // Node 20
  115: {
    x64: '5b126ee00bf754b02e97e4c27090365a8562c5820c93f93918ac2212d4503e91',
    arm64: '6bdbc8ff976b4371af1906175e9025804bacc38a414969f4f02314e6b99f206c',
  },
  // Node 22
  127: {
    x64: '4b55b1f2cb7a7913febbb65a89496412b96af77e838552980092ba6b33723aac',
    arm64: '82b79bd18d1e3563de336156005bd01b7f39fc387b65173d69a29da4ee79f895',
  },
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
 * Loads uWebSockets.js. Returns undefined if its package is not installed.
 *
 * @throws Error if the package has no reviewed binary for this version of Node, or if this system
 *   cannot load it.
 */
export function loadUws(): UwsLibrary | undefined {
  const require = createRequire(import.meta.url)
  let folder: string
  try {
    folder = dirname(require.resolve(PACKAGE))
  } catch {
    return undefined
  }
  const { modules, node } = process.versions
  const expected = UWS_BINARIES[modules]?.[process.arch]
  if (expected === undefined) throw new Error(`${PACKAGE} has no binary for Node ${node} on ${process.arch}`)
  const file = join(folder, `uws_linux_${process.arch}_${modules}.node`)
  const found = createHash('sha256').update(readFileSync(file)).digest('hex')
  if (found !== expected) throw new Error(`${file}: the SHA-256 is ${found}, expected ${expected}`)
  // Without the package's own JavaScript, which adds nothing that is used here.
  return require(file) as UwsLibrary
}
