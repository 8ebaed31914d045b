import { randomBytes } from 'node:crypto'
import { parse } from 'csv-parse/sync'
import { loadAssets } from '../../console/assets.ts'
import { ChangeSender } from '../../console/change-sender.ts'
import { ConsoleWriter } from '../../console/console.ts'
import type { Route } from '../../console/http/router.ts'
import { type IngestListeners, NO_LISTENERS } from '../../console/ingest-listeners.ts'
import type { ConsoleCounters } from '../../console/metrics.ts'
import { ROUTES } from '../../console/routes.ts'
import { consoleHandler } from '../../console/server.ts'
import type { PasswordHasher } from '../../console/sign-in/passwords.ts'
import { secretHash } from '../../console/sign-in/secrets.ts'
import { makeSite } from '../../console/site.ts'
import type { TrialOptions } from '../../console/try-file/trials.ts'
import { claimPort, type HttpImplementation } from '../../engine/http/listen.ts'
import type { BodyPace } from '../../engine/http/port.ts'
import type { Logger } from '../../engine/kernel/process/log.ts'
import { type Network, networkOf } from '../../engine/kernel/process/network.ts'
import { secretsKeyFile } from '../../engine/kernel/process/secrets-key.ts'
import { newUuid } from '../../engine/store/keys.ts'
import type { Role } from '../../engine/store/members.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import { RegistryInForce } from '../../engine/store/registry-in-force.ts'
import type { Session } from '../../engine/store/users.ts'
import { type Answer, serve, type TestServer } from './https.ts'
import { makeOrganization, openStore, quietLog, Sender, scanEvents, type TestStore } from './store.ts'

export interface TestConsole extends TestStore {
  readonly server: TestServer
  readonly origin: string
  readonly organization: Organization
  readonly registry: RegistryInForce
  readonly passwords: PasswordHasher
  /** A user who is a member of the organization, and a browser that is signed in. */
  signIn(name: string, role: Role, organization?: Organization): Browser
  /** Replaces the option `outboundNetworks`. */
  readonly allowOutbound: (networks: readonly Network[]) => void
  /** A browser without cookies. */
  browser(): Browser
}

export interface ConsoleOptions {
  readonly implementation?: HttpImplementation
  readonly routes?: readonly Route[]
  readonly origin?: string
  /** The console knows its origin, so that passkeys work; otherwise the Host field has it. */
  readonly hasOrigin?: boolean
  readonly formPace?: BodyPace
  readonly ingest?: IngestListeners
  readonly trials?: Partial<TrialOptions>
  readonly log?: Logger
  /** false: as with --max-connections-per-address 0. */
  readonly limitsNetworks?: boolean
  readonly counters?: ConsoleCounters
  /** Networks of identity providers, in addition to public ones; loopback if absent. */
  readonly outboundNetworks?: readonly Network[]
  /** The test stores what no program would write. */
  readonly unchecked?: boolean
  /** Of a node of a cluster. */
  readonly staleness?: { isStale: boolean }
  /** The time at which the clock starts; NOON if absent. */
  readonly startMs?: number
}

/** Where the providers of tests are. */
export const LOOPBACK: readonly Network[] = [networkOf('127.0.0.0/8') as Network]

/**
 * The console over TLS, on a store of its own with one organization; changes are made in the test's
 * thread.
 */
export async function serveConsole(
  t: { testdir(): string; teardown(work: () => unknown): void },
  options: ConsoleOptions = {},
): Promise<TestConsole> {
  const opened = openStore(t, options)
  const { store, clock } = opened
  const port = options.hasOrigin ? await claimPort('--console-port', '127.0.0.1', 0) : 0
  const ownOrigin = options.hasOrigin ? `https://localhost:${port}` : options.origin
  const organization = makeOrganization(opened, 'Acme')
  const registry = new RegistryInForce(store)
  const writer = new ConsoleWriter(store, registry, clock, quietLog)
  const changes: ChangeSender = new ChangeSender((request) => {
    setImmediate(() => {
      void writer.make(structuredClone(request)).then((outcome) => changes.settle(structuredClone(outcome)))
    })
  })
  const log = options.log ?? quietLog
  const site = makeSite(
    { store, clock, registry, changes, ingest: options.ingest ?? NO_LISTENERS, log },
    {
      dataDirectory: opened.directory,
      origin: ownOrigin ?? '',
      keyFile: secretsKeyFile('', opened.directory),
      outboundNetworks: options.outboundNetworks ?? LOOPBACK,
      trials: { log, ...options.trials },
      limitsNetworks: options.limitsNetworks ?? true,
      ...(options.counters && { counters: options.counters }),
    },
  )
  const handler = consoleHandler({
    site,
    routes: options.routes ?? ROUTES,
    assets: loadAssets(),
    origin: ownOrigin ?? '',
    scheme: 'https',
    log: quietLog,
    staleness: options.staleness,
    ...(options.formPace ? { formPace: options.formPace } : {}),
  })
  const server = await serve(t, options.implementation ?? 'node', opened.directory, handler, port)
  const origin = ownOrigin ?? `https://localhost:${server.listener.port}`
  return {
    ...opened,
    server,
    origin,
    organization,
    registry,
    passwords: site.passwords,
    allowOutbound: site.allowOutbound,
    browser: () => new Browser(server, origin),
    signIn(name, role, of = organization) {
      const browser = new Browser(server, origin)
      const secret = randomBytes(32).toString('hex')
      browser.cookies.set('__Host-session', secret)
      store.environment.write(() => {
        const user = store.users.byName(name) ?? {
          ...{ id: newUuid(), name, passwordHash: '', createdAtMs: clock.nowMs(), browsers: [] },
        }
        store.users.put(user)
        store.members.put({ organizationId: of.id, name, role, createdAtMs: clock.nowMs(), userId: user.id })
        // The test may have removed the member.
        store.removedMembers.remove({ organizationId: of.id, name })
        store.sessions.put(newSession(user.id, of.id, secret, clock.nowMs()))
      })
      return browser
    },
  }
}

const sender = new Sender()

/** Buffers an event a minute ago for each name, each from another client, and runs a scan. */
export function scanWith(site: TestConsole, names: readonly string[]): void {
  const atMs = site.clock.nowMs() - 60_000
  const events = names.map((name, index) => sender.event(name, atMs, { client: `192.0.2.${index + 1}` }))
  scanEvents(site, site.organization, events)
}

function newSession(userId: string, organizationId: string, secret: string, nowMs: number): Session {
  const times = { createdAtMs: nowMs, usedAtMs: nowMs, confirmedAtMs: nowMs }
  const hash = secretHash(secret)
  return { id: newUuid(), userId, organizationId, hash, ...times, address: '127.0.0.1', browser: 'test' }
}

/** A browser as far as the server sees one: it keeps cookies, and says where a form comes from. */
export class Browser {
  readonly cookies = new Map<string, string>()
  readonly #server: Pick<TestServer, 'ask'>
  readonly #origin: string

  constructor(server: Pick<TestServer, 'ask'>, origin: string) {
    this.#server = server
    this.#origin = origin
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#ask(path, 'GET', headers)
  }

  /** The rows of a CSV file, by heading. */
  async rows(path: string): Promise<Record<string, string>[]> {
    const { status, text } = await this.get(path)
    if (status !== 200 || text === '') throw new Error(`${path}: ${status} ${text}`)
    return parse(text, { columns: true }) as Record<string, string>[]
  }

  /** Posts a form from a page of the console. */
  post(
    path: string,
    fields: Readonly<Record<string, string | readonly string[]>> = {},
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const body = new URLSearchParams()
    for (const [name, value] of Object.entries(fields)) {
      for (const each of typeof value === 'string' ? [value] : value) body.append(name, each)
    }
    const own = { ...this.formHeaders(), ...headers }
    return this.#ask(path, 'POST', own, body.toString())
  }

  /** Posts a form, and loads the page to which the answer redirects. */
  async submit(...[path, fields, headers]: Parameters<Browser['post']>): Promise<Answer> {
    const answer = await this.post(path, fields, headers)
    return answer.status === 303 ? this.get(String(answer.headers['location']), headers) : answer
  }

  /** Posts a form with one file, as a browser sends it. */
  postFile(path: string, file: Uint8Array, name = 'file', headers: Record<string, string> = {}): Promise<Answer> {
    const { type, body } = multipart([{ field: 'file', name, bytes: file }])
    return this.postBody(path, body, { 'content-type': type, ...headers })
  }

  postBody(path: string, body: Uint8Array, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#ask(path, 'POST', { ...this.formHeaders(), ...headers }, body)
  }

  /** The Cookie field. */
  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  formHeaders(): Record<string, string> {
    return {
      'content-type': 'application/x-www-form-urlencoded',
      'sec-fetch-site': 'same-origin',
      origin: this.#origin,
    }
  }

  async #ask(
    path: string,
    method: string,
    headers: Record<string, string>,
    body?: string | Uint8Array,
  ): Promise<Answer> {
    const { cookie } = this
    const answer = await this.#server.ask(path, {
      method,
      headers: { ...(cookie === '' ? {} : { cookie }), ...headers },
      ...(body === undefined ? {} : { body }),
    })
    for (const line of [answer.headers['set-cookie'] ?? []].flat()) this.#keep(line)
    return answer
  }

  #keep(line: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    if (line.includes('Max-Age=0')) this.cookies.delete(name)
    else this.cookies.set(name, value)
  }
}

export interface FilePart {
  readonly field: string
  readonly name: string
  readonly bytes: Uint8Array
}

export const BOUNDARY = '----WebKitFormBoundarySvcTryFile01'

/** A multipart/form-data body (RFC 7578). */
export function multipart(parts: readonly FilePart[]): { readonly type: string; readonly body: Buffer } {
  const pieces = parts.flatMap(({ field, name, bytes }) => [
    Buffer.from(
      `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${field}"; filename="${name}"\r\nContent-Type: application/octet-stream\r\n\r\n`,
    ),
    bytes,
    Buffer.from('\r\n'),
  ])
  const body = Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)])
  return { type: `multipart/form-data; boundary=${BOUNDARY}`, body }
}
