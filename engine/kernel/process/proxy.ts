import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { getProxyForUrl } from 'proxy-from-env'
import { Fault } from './error-codes.ts'
import { hostAndPort, withoutBrackets } from './network.ts'

/**
 * Returns the proxy that the environment sets for a URL (HTTPS_PROXY, ALL_PROXY, except hosts in
 * NO_PROXY), if any: a proxy for HTTP CONNECT (RFC 9110 §9.3.6), reached by HTTP or HTTPS.
 *
 * @throws Fault USAGE. The message omits the variable's value, which may contain a password.
 */
export function proxyFor(url: string): URL | undefined {
  const named = getProxyForUrl(url)
  if (named === '') return undefined
  // The library prepends the URL's scheme to a value without one. Such a value was not a URL.
  const raw =
    process.env['https_proxy'] ||
    process.env['HTTPS_PROXY'] ||
    process.env['all_proxy'] ||
    process.env['ALL_PROXY'] ||
    ''
  if (URL.canParse(raw) && /^https?:$/.test(new URL(raw).protocol) && canDecode(raw)) return new URL(raw)
  throw new Fault('USAGE', 'HTTPS_PROXY: not the URL of a proxy; expected one such as http://proxy.example:3128')
}

/** RFC 3986 §2.1: a percent sign in a password must be written %25. */
function canDecode(url: string): boolean {
  const { username, password } = new URL(url)
  try {
    decodeURIComponent(username + password)
    return true
  } catch {
    return false
  }
}

export const PROXY_REFUSED = 'PROXY_REFUSED'

/** Opens a connection to host and port through the proxy. */
export function tunnel(
  proxy: URL,
  host: string,
  port: number,
  timeoutMs: number,
  registerCancel: (cancel: () => void) => void,
): Promise<Socket> {
  const target = hostAndPort(host, port)
  const proxyPort = proxy.port || (proxy.protocol === 'https:' ? '443' : '80')
  const at = `${proxy.hostname} port ${proxyPort}`
  const password = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
  return new Promise((resolve, reject) => {
    const outgoing = (proxy.protocol === 'https:' ? httpsRequest : httpRequest)({
      host: withoutBrackets(proxy.hostname),
      port: proxyPort,
      method: 'CONNECT',
      path: target,
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        host: target,
        ...(proxy.username === ''
          ? {}
          : { 'proxy-authorization': `Basic ${Buffer.from(password).toString('base64')}` }),
      },
    })
    registerCancel(() => outgoing.destroy(new Error('the connection attempt was canceled')))
    const refused = ({ statusCode, statusMessage }: IncomingMessage): void => {
      const why = `the proxy ${at} answered ${statusCode} ${statusMessage ?? ''}`.trimEnd()
      outgoing.destroy()
      reject(Object.assign(new Error(why), { code: PROXY_REFUSED }))
    }
    outgoing
      .once('connect', (answer, socket) => (answer.statusCode === 200 ? resolve(socket) : refused(answer)))
      .once('response', refused)
      .on('error', (error: NodeJS.ErrnoException) => {
        const why =
          error.name === 'AbortError' || error.name === 'TimeoutError'
            ? `the proxy ${at} does not answer`
            : error.message
        reject(Object.assign(new Error(why), { code: error.code, proxy: at, hostname: proxy.hostname }))
      })
      .end()
  })
}
