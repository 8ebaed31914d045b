import type * as Uws from 'uWebSockets.js'
import { Fault } from '../process/error-codes.ts'
import { clientOfBytes } from '../process/network.ts'
import type { TlsFiles } from './certificate.ts'
import { type HttpListener, type HttpListenOptions, REASON_PHRASE, sendError, whenIdle } from './port.ts'
import { UwsRequest } from './uws-request.ts'
import { UwsResponse } from './uws-response.ts'
import { Traffic } from './uws-traffic.ts'

/*
 * The only file that touches uWebSockets.js. Two rules of that library end the process when broken, without a JavaScript
 * exception: a handler must answer or set onAborted before it returns, and an aborted response must not be touched.
 * So onAborted is set for who has not answered when the handler returns or waits for a body, and every write asks `aborted`.
 *
 * A call into the library costs 0.15 us, however little it does: fields are written by one call, as the lines that they are.
 *
 * `end` keeps whatever the client does not take, without a bound, so a body goes by `tryEnd`: what the system does not take at once waits here, once, and a
 * client that asks for more meanwhile is let go, by the library.
 */

type Library = typeof Uws & { _cfg?: (option: string) => void }

/** Why there is no uWebSockets.js: it has no binary for this Node or C library. Undefined where there is one. */
export async function whyNoUws(): Promise<Error | undefined> {
  try {
    await import('uWebSockets.js')
    return undefined
  } catch (error) {
    return error as Error
  }
}

/**
 * Starts a listener over uWebSockets.js. Several threads may listen on one port; the kernel then spreads the connections.
 *
 * @throws Fault PORT_TAKEN; CERTIFICATE, from reload, too; and whatever importing the library throws where `whyNoUws` tells of it.
 */
export async function listenUws(options: HttpListenOptions): Promise<HttpListener> {
  const uws = (await import('uWebSockets.js')) as Library
  // No `uWebSockets` banner in the answers.
  uws._cfg?.('silent')
  const traffic = new Traffic(options)
  const first = await open(uws, options, traffic)
  const apps = [first]
  const port = uws.us_socket_local_port(first.socket)
  traffic.port = port
  return {
    implementation: 'uWebSockets.js',
    port,
    async reload() {
      if (apps.length === 0) return
      // An app keeps its certificate for ever, so another one takes the port over. They share it for a moment.
      const next = await open(uws, { ...options, port }, traffic)
      await briefTurn()
      const before = apps.at(-1)
      if (before !== undefined) uws.us_listen_socket_close(before.socket)
      apps.push(next)
    },
    async drain(deadlineMs) {
      // The library takes no socket that is closed twice.
      const open = apps.splice(0)
      const last = open.at(-1)
      if (last !== undefined) uws.us_listen_socket_close(last.socket)
      await whenIdle(() => traffic.requests, deadlineMs, options.log)
      for (const { app } of open) app.close()
    },
  }
}

/** Turns of the event loop that are looked at for a brief one. */
const TURNS_MAX = 30
const BRIEF_TURN_MS = 0.3

/**
 * A moment right behind a turn in which little happened. The system resets connections that a socket has not taken yet when it is closed: behind such a turn
 * there are next to none.
 */
async function briefTurn(): Promise<void> {
  for (let turns = 0; turns < TURNS_MAX; turns++) {
    const began = performance.now()
    await new Promise((resolve) => setImmediate(resolve))
    if (turns > 0 && performance.now() - began < BRIEF_TURN_MS) return
  }
}

interface OpenApp {
  readonly app: Uws.TemplatedApp
  readonly socket: Uws.us_listen_socket
}

async function open(uws: typeof Uws, options: HttpListenOptions, traffic: Traffic): Promise<OpenApp> {
  const app = options.tls ? secureApp(uws, options.tls) : uws.App()
  const onConnection = (raw: Uws.HttpResponse, change: number): void => {
    // Of a connection that has closed the library knows no address.
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
  const socket = await new Promise<Uws.us_listen_socket | false>((resolve) => {
    app.listen(options.address, options.port, resolve)
  })
  if (socket === false) throw new Fault('PORT_TAKEN', `${options.address} port ${options.port}: cannot listen`)
  return { app, socket }
}

/** The library takes fewer kinds of keys than Node does. */
function secureApp(uws: typeof Uws, { keyFile, certificateFile }: TlsFiles): Uws.TemplatedApp {
  try {
    return uws.SSLApp({ key_file_name: keyFile, cert_file_name: certificateFile })
  } catch (error) {
    throw new Fault(
      'CERTIFICATE',
      `${certificateFile}, ${keyFile}: uWebSockets.js cannot use this kind of key; take RSA, or ECDSA on P-256, P-384 or P-521, or serve with --http node`,
      { cause: error },
    )
  }
}

function answer(
  raw: Uws.HttpResponse,
  rawRequest: Uws.HttpRequest,
  method: string,
  path: string,
  options: HttpListenOptions,
  traffic: Traffic,
): void {
  traffic.requests++
  const response = new UwsResponse(raw, traffic, options)
  const length = rawRequest.getHeader('content-length')
  const request = new UwsRequest(rawRequest, raw, response, method, path, length)
  response.request = request
  if (length !== '' && comesTwice(rawRequest, 'content-length')) {
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

/** The library takes the first length, whoever stands before it may have taken another (RFC 9112 §6.3). */
function comesTwice(request: Uws.HttpRequest, wanted: string): boolean {
  let times = 0
  request.forEach((name) => {
    if (name === wanted) times++
  })
  return times > 1
}
