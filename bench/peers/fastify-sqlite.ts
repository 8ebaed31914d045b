import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { constants } from 'node:zlib'
import { PublishedList } from '../../engine/store/published.ts'
import { Store } from '../../engine/store/store.ts'

/*
 * The same work with fastify and better-sqlite3: the key by its hash, plan and scope, 60 requests
 * per minute in this one process, a page of platforms in order, JSON assembled from stored texts,
 * an entity tag, and gzip by @fastify/compress.
 */
const [dataDirectory = '', , key = '', certificate = '', fastifyFolder = '', sqliteFolder = '', compressFolder = ''] =
  process.argv.slice(2)
const REQUESTS_MAX = 60
const WINDOW_MS = 60_000

interface Statement {
  run(...values: unknown[]): unknown
  all(...values: unknown[]): Record<string, unknown>[]
  get(...values: unknown[]): Record<string, unknown> | undefined
}
interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
}
interface Reply {
  code(status: number): Reply
  header(name: string, value: string): Reply
  type(name: string): Reply
  send(body: unknown): Reply
}
interface Request {
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly query: Readonly<Record<string, string | undefined>>
}
interface Fastify {
  register(plugin: unknown, options: object): Promise<void>
  get(path: string, handler: (request: Request, reply: Reply) => unknown): void
  listen(options: { host: string; port: number }): Promise<string>
}

const BetterSqlite = createRequire(join(sqliteFolder, 'package.json'))('better-sqlite3') as new (
  file: string,
) => Database
const fastify = createRequire(join(fastifyFolder, 'package.json'))('fastify') as (options: object) => Fastify
const folder = mkdtempSync(join(tmpdir(), 'posture-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
process.on('SIGTERM', () => process.exit())

const database = fill(new BetterSqlite(join(folder, 'api.sqlite')))
const findKey = database.prepare(
  'SELECT k.organization, k.scopes, o.plan, o.scan, o.tag FROM keys k JOIN organizations o ON o.id = k.organization WHERE k.hash = ?',
)
const findPlatforms = database.prepare(
  'SELECT json FROM platforms WHERE organization = ? ORDER BY place LIMIT ? OFFSET ?',
)
const requests = new Map<string, number[]>()

const app = fastify({ https: { key: readFileSync(key), cert: readFileSync(certificate) } })
await app.register(createRequire(join(compressFolder, 'package.json'))('@fastify/compress'), {
  global: true,
  encodings: ['gzip', 'identity'],
  zlibOptions: { level: constants.Z_BEST_SPEED },
})
app.get('/api/v1/discovery', (request, reply) => {
  const hash = createHash('sha256')
    .update(request.headers['x-api-key'] ?? '')
    .digest('hex')
  const found = findKey.get(hash)
  if (found === undefined) return reply.code(401).send({ error: 'Invalid API key' })
  if (found['plan'] !== 'enterprise') return reply.code(403).send({ error: 'plan' })
  if (!String(found['scopes']).includes('discovery:read')) return reply.code(403).send({ error: 'scope' })
  const nowMs = performance.now()
  const recent = (requests.get(hash) ?? []).filter((timeMs) => nowMs - timeMs < WINDOW_MS)
  if (recent.length >= REQUESTS_MAX) return reply.code(429).send({ error: 'rate' })
  recent.push(nowMs)
  requests.set(hash, recent)
  const limit = Number(request.query['limit'] ?? 100)
  const offset = Number(request.query['offset'] ?? 0)
  const platforms = findPlatforms.all(found['organization'], limit, offset).map(({ json }) => json)
  return reply
    .header('etag', `"${found['tag']}"`)
    .header('ratelimit-limit', String(REQUESTS_MAX))
    .header('ratelimit-remaining', String(REQUESTS_MAX - recent.length))
    .header('cache-control', 'private, no-cache')
    .type('application/json')
    .send(`{"scan":${found['scan']},"platforms":[${platforms.join(',')}]}`)
})
const url = await app.listen({ host: '127.0.0.1', port: 0 })
process.send?.(Number(new URL(url).port))

/** The content of our store. */
function fill(sqlite: Database): Database {
  sqlite.exec('PRAGMA journal_mode=WAL')
  sqlite.exec(`CREATE TABLE organizations (id TEXT PRIMARY KEY, plan TEXT, scan TEXT, tag TEXT);
    CREATE TABLE keys (hash TEXT PRIMARY KEY, organization TEXT, scopes TEXT);
    CREATE TABLE platforms (organization TEXT, place INTEGER, json TEXT, PRIMARY KEY (organization, place)) WITHOUT ROWID`)
  const addOrganization = sqlite.prepare('INSERT INTO organizations VALUES (?, ?, ?, ?)')
  const addKey = sqlite.prepare('INSERT INTO keys VALUES (?, ?, ?)')
  const addPlatform = sqlite.prepare('INSERT INTO platforms VALUES (?, ?, ?)')
  const store = new Store(dataDirectory)
  sqlite.exec('BEGIN')
  for (const { id, plan } of store.organizations.all()) {
    const head = store.published.head(id, PublishedList.discovery)
    addOrganization.run(id, plan, head?.text.toString() ?? 'null', head?.tag ?? '')
    for (const { hash, scopes } of store.apiKeys.ofOrganization(id)) addKey.run(hash, id, scopes.join(' '))
    const runs = store.published.elements(id, PublishedList.discovery, head?.count ?? 0, 0, head?.count ?? 0)
    const platforms = JSON.parse(`[${Buffer.concat(runs).toString()}]`) as unknown[]
    for (const [place, platform] of platforms.entries()) addPlatform.run(id, place, JSON.stringify(platform))
  }
  sqlite.exec('COMMIT')
  void store.close()
  return sqlite
}
