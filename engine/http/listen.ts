import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { Fault } from '../kernel/process/error-codes.ts'
import type { Logger } from '../kernel/process/log.ts'
import type { TlsFiles } from './certificate.ts'
import { listenNode } from './node.ts'
import type { HttpListener, HttpListenOptions } from './port.ts'
import { listenUws } from './uws.ts'
import { INSTALL_UWS, loadUws, type UwsLibrary } from './uws-library.ts'

/** `auto`: uWebSockets.js where it is installed and loads, else node:http. */
export const HTTP_IMPLEMENTATIONS = ['auto', 'uws', 'node'] as const
export type HttpImplementation = (typeof HTTP_IMPLEMENTATIONS)[number]

/**
 * Starts a listener with the chosen implementation.
 *
 * @throws Fault of the listener; USAGE if uWebSockets.js is chosen and does not load
 */
export async function listenHttp(
  implementation: HttpImplementation,
  options: HttpListenOptions,
): Promise<HttpListener> {
  const uws = implementation === 'node' ? undefined : uwsFor(implementation, options.log)
  return uws === undefined ? listenNode(options) : listenUws(uws, options)
}

function uwsFor(implementation: 'auto' | 'uws', log: Logger): UwsLibrary | undefined {
  try {
    const uws = loadUws()
    if (uws === undefined && implementation === 'uws') throw new Error(`install it by: ${INSTALL_UWS}`)
    return uws
  } catch (error) {
    const [reason] = (error as Error).message.split('\n', 1)
    if (implementation === 'uws') {
      throw new Fault('USAGE', `--http-server uws: uWebSockets.js does not load: ${reason}`, { cause: error })
    }
    log.warn({ reason }, 'uWebSockets.js does not load; using node:http')
    return undefined
  }
}

/**
 * Whether several threads can listen on one port. node:http can from 22.12 and 23.1 on (option
 * reusePort).
 */
export function sharesPorts(listener: HttpListener): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const nodeCan = major === 22 ? minor >= 12 : major === 23 ? minor >= 1 : major > 23
  return listener.implementation !== 'node:http' || nodeCan
}

/** Maps `::`, which includes IPv4, to `0.0.0.0` on systems without IPv6. */
export function wildcardAddress(address: string): string {
  return address === '::' && !existsSync('/proc/net/if_inet6') ? '0.0.0.0' : address
}

/**
 * Checks that no other process listens on the port and returns its number (a free port for 0).
 * Threads then share the port by SO_REUSEPORT, which would also share it with another process of
 * the same user.
 *
 * @throws Fault PORT_TAKEN, PORT_DENIED
 */
export function claimPort(setting: string, address: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => reject(portFault(setting, address, port, error)))
    probe.listen({ host: address, port, exclusive: true }, () => {
      const bound = probe.address()
      probe.close(() => resolve(typeof bound === 'object' && bound !== null ? bound.port : port))
    })
  })
}

export function portFault(setting: string, address: string, port: number, error: NodeJS.ErrnoException): Fault {
  const where = `${setting} ${port} on ${address}`
  switch (error.code) {
    case 'EADDRINUSE':
      return new Fault('PORT_TAKEN', `${where}: another program uses this port. Stop it or choose another port`)
    case 'EACCES':
      return new Fault(
        'PORT_DENIED',
        `${where}: permission denied. Choose a port above 1023 or grant CAP_NET_BIND_SERVICE`,
      )
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new Fault('PORT_DENIED', `${where}: this machine has no such address`)
    default:
      return new Fault('PORT_DENIED', `${where}: ${error.message}`)
  }
}

/** The URL of a listener, without a path. */
export function originOf(tls: TlsFiles | undefined, address: string, port: number): string {
  return `${tls === undefined ? 'http' : 'https'}://${address.includes(':') ? `[${address}]` : address}:${port}`
}
