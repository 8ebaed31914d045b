import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { Fault } from '../process/error-codes.ts'
import { listenNode } from './node.ts'
import type { HttpListener, HttpListenOptions } from './port.ts'
import { listenUws, whyNoUws } from './uws.ts'

/** Which implementation serves; `auto` takes uWebSockets.js where it has a binary. */
export const HTTP_IMPLEMENTATIONS = ['auto', 'uws', 'node'] as const
export type HttpImplementation = (typeof HTTP_IMPLEMENTATIONS)[number]

/** Starts a listener over the implementation that was asked for. */
export async function listenHttp(
  implementation: HttpImplementation,
  options: HttpListenOptions,
): Promise<HttpListener> {
  if (implementation === 'node') return listenNode(options)
  const missing = implementation === 'auto' ? await whyNoUws() : undefined
  if (missing === undefined) return listenUws(options)
  const reason = missing.message.split('\n', 1)[0]
  options.log.warn({ reason }, 'no uWebSockets.js for this Node: node:http serves')
  return listenNode(options)
}

/** Whether several threads can listen on one port: node:http can from 22.12 and 23.1 on (its option reusePort). */
export function sharesPorts(listener: HttpListener): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const nodeCan = major === 22 ? minor >= 12 : major === 23 ? minor >= 1 : major > 23
  return listener.implementation !== 'node:http' || nodeCan
}

/** `::` where the system has IPv6, and then it is IPv4, too; `0.0.0.0` where it has none. Other addresses stay. */
export function everyAddress(address: string): string {
  return address === '::' && !existsSync('/proc/net/if_inet6') ? '0.0.0.0' : address
}

/**
 * Makes sure that nobody else listens on the port, and answers its number (another one only where 0 was asked for).
 * Threads then share it by SO_REUSEPORT, which would as readily share it with a stranger of the same user.
 *
 * @throws Fault PORT_TAKEN, PORT_DENIED.
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
      return new Fault('PORT_TAKEN', `${where}: another program listens there; stop it or choose another port`)
    case 'EACCES':
      return new Fault(
        'PORT_DENIED',
        `${where}: not permitted; choose a port from 1024 on or grant CAP_NET_BIND_SERVICE`,
      )
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new Fault('PORT_DENIED', `${where}: this machine has no such address`)
    default:
      return new Fault('PORT_DENIED', `${where}: ${error.message}`)
  }
}
