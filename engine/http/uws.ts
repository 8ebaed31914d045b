import { Fault } from '../kernel/process/error-codes.ts'
import { clientOfBytes } from '../kernel/process/network.ts'
import type { TlsFiles } from './certificate.ts'
import { type HttpListener, type HttpListenOptions, REASON_PHRASE, sendError, whenIdle } from './port.ts'
import { TLS_1_2_CIPHERS } from './tls-ciphers.ts'
import type { UwsApp, UwsLibrary, UwsListenSocket, UwsRawRequest, UwsRawResponse } from './uws-library.ts'
import { UwsRequest } from './uws-request.ts'
import { UwsResponse } from './uws-response.ts'
import { Traffic } from './uws-traffic.ts'

/*
 * The only file that uses uWebSockets.js (uws-library.ts loads it). Breaking one of two rules of
 * that library ends the process without a JavaScript exception: a handler must respond or set
 * onAborted before it returns, and an aborted response must not be used. Therefore onAborted is set
 * for each handler that returns without a response or waits for a body, and every write checks
 * `aborted`.
 *
 * A call into the library costs 0.15 us, whatever it does, so all fields are written by one call.
 *
 * `end` buffers whatever the client does not read, without a limit. Bodies are therefore sent by
 * `tryEnd`: bytes that the kernel does not accept are kept here, once. The library disconnects a
 * client that sends further requests in the meantime.
 */

/**
 * Starts a listener over uWebSockets.js. Several threads can listen on one port. The kernel then
 * distributes the connections.
 *
 * @throws Fault PORT_TAKEN; CERTIFICATE, also from reload()
 */
export async function listenUws(uws: UwsLibrary, options: HttpListenOptions): Promise<HttpListener> {
  // Removes the `uWebSockets` banner from responses.
  uws._cfg('silent')
  const traffic = new Traffic(options)
  let { tls } = options
  const first = await open(uws, options, traffic)
  const apps = [first]
  const port = uws.us_socket_local_port(first.socket)
  traffic.port = port
  const reload = async (files: TlsFiles | undefined): Promise<void> => {
    if (apps.length === 0) return
    // An app cannot change its certificate, so a new app takes over the port. Both share it
    // briefly.
    const next = await open(uws, { ...options, ...(files && { tls: files }), port }, traffic)
    tls = files
    await shortTurn()
    const before = apps.at(-1)
    if (before !== undefined) uws.us_listen_socket_close(before.socket)
    apps.push(next)
  }
  /** The last reload. */
  let reloaded: Promise<void> = Promise.resolve()
  return {
    implementation: 'uWebSockets.js',
    port,
    reload(files = tls) {
      const next = reloaded.then(() => reload(files))
      reloaded = next.catch(() => {})
      return next
    },
    async drain(deadlineMs) {
      // Otherwise the app of a reload that is in progress would never stop listening.
      await reloaded
      // Closing a socket twice crashes the library.
      const open = apps.splice(0)
      const last = open.at(-1)
      if (last !== undefined) uws.us_listen_socket_close(last.socket)
      await whenIdle(() => traffic.requests, deadlineMs, options.log)
      await closeAll(open, traffic)
    },
  }
}

/** Closing takes one turn of the event loop for five postponed handshakes. */
const CLOSING_MS_MAX = 1000

/**
 * Closes all connections. Of TLS handshakes that come at the same time, the library processes five
 * in a turn of the event loop, and `close` does not reach the postponed ones. So it is called again
 * until none is left: a thread that exits with an open connection ends the process with SIGABRT.
 */
async function closeAll(open: readonly OpenApp[], { connections }: Traffic): Promise<void> {
  const deadline = performance.now() + CLOSING_MS_MAX
  do {
    for (const { app } of open) app.close()
    await new Promise((resolve) => setImmediate(resolve))
  } while (connections.openCount > 0 && performance.now() < deadline)
}

interface OpenApp {
  readonly app: UwsApp
  readonly socket: UwsListenSocket
}

async function open(uws: UwsLibrary, options: HttpListenOptions, traffic: Traffic): Promise<OpenApp> {
  const app = options.tls ? secureApp(uws, options.tls) : uws.App()
  const onConnection = (raw: UwsRawResponse, change: number): void => {
    // The library does not know the address of a connection that has closed.
    if (change < 0) traffic.connections.close()
    else if (!traffic.connections.open(clientOfBytes(new Uint8Array(raw.getRemoteAddress())))) raw.close()
  }
  app.filter(onConnection)
  for (const path of options.fastPaths ?? []) {
    app.get(path, (raw, request) => answer(raw, request, 'GET', path, options, traffic))
  }
  app.any('/*', (raw, request) => {
    answer(raw, request, request.getCaseSensitiveMethod(), request.getUrl(), options, traffic)
  })
  const socket = await new Promise<UwsListenSocket | false>((resolve) => {
    app.listen(options.address, options.port, resolve)
  })
  if (socket === false) throw new Fault('PORT_TAKEN', `${options.address} port ${options.port}: cannot listen`)
  return { app, socket }
}

/** The library supports fewer key types than Node. */
function secureApp(uws: UwsLibrary, { keyFile, certificateFile }: TlsFiles): UwsApp {
  try {
    return uws.SSLApp({ key_file_name: keyFile, cert_file_name: certificateFile, ssl_ciphers: TLS_1_2_CIPHERS })
  } catch (error) {
    throw new Fault(
      'CERTIFICATE',
      `${certificateFile}, ${keyFile}: uWebSockets.js does not support this key type. Use RSA, ECDSA on P-256, P-384 or P-521, or --http-server node`,
      { cause: error },
    )
  }
}

function answer(
  raw: UwsRawResponse,
  rawRequest: UwsRawRequest,
  method: string,
  path: string,
  options: HttpListenOptions,
  traffic: Traffic,
): void {
  traffic.requests++
  const keepsAlive = rawRequest.getHeader('connection').toLowerCase() !== 'close'
  const response = new UwsResponse(raw, traffic, options, keepsAlive)
  const length = rawRequest.getHeader('content-length')
  const request = new UwsRequest(rawRequest, raw, response, method, path, length)
  response.request = request
  if (length !== '' && isRepeated(rawRequest, 'content-length')) {
    sendError(response, 400, REASON_PHRASE[400] ?? '', ['connection', 'close'], method === 'HEAD')
    return
  }
  try {
    const later = options.handler(request, response)
    response.returned()
    if (later !== undefined) later.catch((error: unknown) => fail(error, request, response, options))
  } catch (error) {
    fail(error, request, response, options)
  }
}

function fail(error: unknown, { method, path }: UwsRequest, response: UwsResponse, { log }: HttpListenOptions): void {
  log.error({ path, err: error }, 'request failed')
  sendError(response, 500, 'Internal error', [], method === 'HEAD')
}

/**
 * The library uses the first Content-Length. A proxy in front may have used another one (RFC 9112
 * §6.3).
 */
function isRepeated(request: UwsRawRequest, wanted: string): boolean {
  let times = 0
  request.forEach((name) => {
    if (name === wanted) times++
  })
  return times > 1
}

/** Maximum turns of the event loop to wait for a short one. */
const TURNS_MAX = 30
const SHORT_TURN_MS = 0.3

/**
 * Resolves after a turn of the event loop with little work. Closing a listening socket resets
 * connections that wait to be accepted. After such a turn there are hardly any.
 */
async function shortTurn(): Promise<void> {
  for (let turns = 0; turns < TURNS_MAX; turns++) {
    const began = performance.now()
    await new Promise((resolve) => setImmediate(resolve))
    if (turns > 0 && performance.now() - began < SHORT_TURN_MS) return
  }
}
