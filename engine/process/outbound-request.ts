import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect } from 'node:tls'
import { withoutBrackets } from './host.ts'
import { isLoopbackHost, type Network } from './network.ts'
import { checkAddress, connectChecked } from './outbound-address.ts'
import { proxyFor, tunnel } from './proxy.ts'

/**
 * A connection to the host of a URL that a member entered, directly or through HTTPS_PROXY, which
 * decides by its own rules to which names it connects.
 *
 * @throws TargetRefused if the address is neither public nor in an allowed network
 */
export async function connectTo(url: URL, allowed: readonly Network[], timeoutMs: number): Promise<Socket> {
  const host = withoutBrackets(url.hostname)
  const isTls = url.protocol === 'https:'
  const port = Number(url.port || (isTls ? 443 : 80))
  const proxy = isTls && !isLoopbackHost(url.hostname) ? proxyFor(url.href) : undefined
  if (proxy === undefined) return connectChecked(host, port, { allowed, timeoutMs })
  checkAddress(host, allowed)
  return tunnel(proxy, host, port, timeoutMs, () => {})
}

/** Sends one request over a connection of connectTo. Follows no redirect. */
export function requestOver(
  socket: Socket,
  url: URL,
  options: RequestOptions,
  body: string,
  tls: Pick<ConnectionOptions, 'ca'> = {},
): Promise<IncomingMessage> {
  const isTls = url.protocol === 'https:'
  const host = withoutBrackets(url.hostname)
  // Server Name Indication is for names only (RFC 6066 §3).
  const servername = isIP(host) === 0 ? { servername: host } : {}
  const createConnection = () => (isTls ? connect({ socket, host, ...servername, ...tls }) : socket)
  return new Promise((resolve, reject) => {
    const request = isTls ? httpsRequest : httpRequest
    request(url, { ...options, createConnection })
      .once('response', resolve)
      .once('error', reject)
      // Without this listener, node:http drops the connection and emits no event of these.
      .once('upgrade', (_response, upgraded: Socket) => {
        upgraded.destroy()
        reject(new Error('the server switched to another protocol (status 101)'))
      })
      // After a response or an error, this rejection has no effect.
      .once('close', () => reject(new Error('the connection was closed before a response')))
      .end(body)
  })
}
