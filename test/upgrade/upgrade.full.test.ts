import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Agent, request } from 'undici'
import { SCHEMA_VERSION } from '../../engine/store/migrate.ts'
import { pcapFile } from '../support/packets-pcap.ts'
import {
  forwardArgs,
  PROGRAMS,
  REPOSITORY,
  type RunningService,
  startCommand,
  startServiceCommand,
} from '../support/programs.ts'
import { demoMatches } from '../support/released.ts'

/*
 * The programs open what each schema left on disk (write.ts). Nothing is lost, nothing counts
 * twice, and the API's answers do not change.
 */

const FOLDER = join(REPOSITORY, 'test/upgrade')

interface Was {
  readonly writtenAt: string
  readonly key: string
  readonly token: string
  readonly discovery: Discovery
  readonly answers: Readonly<Record<string, unknown>>
  /** Number of records per table. */
  readonly tables: Readonly<Record<string, number>>
}
interface Discovery {
  readonly scan: { readonly id: string; readonly summary: unknown }
  readonly platforms: readonly Platform[]
}
interface Platform {
  readonly id: string
  readonly platform_name: string
  readonly platform_type: string
  readonly url: string
  readonly confidence: number
  readonly metadata: { readonly matches: number; readonly clients: number; readonly first_seen: string }
}

const samples = readdirSync(FOLDER, { withFileTypes: true }).flatMap((entry) =>
  entry.isDirectory() ? [entry.name] : [],
)
t.same(
  samples.sort(),
  Array.from({ length: SCHEMA_VERSION }, (_, index) => `schema-${index + 1}`).sort(),
  'one sample of each schema: npm run keep-sample',
)

for (const sample of samples) {
  t.test(sample, { timeout: 120_000 }, async (t) => {
    const folder = t.testdir()
    const data = join(folder, 'service')
    const outbox = join(folder, 'outbox')
    for (const [name, to] of [
      ['service', data],
      ['outbox', outbox],
    ] as const) {
      mkdirSync(to)
      execFileSync('tar', ['-xzf', join(FOLDER, sample, `${name}.tar.gz`), '-C', to])
    }
    const was = JSON.parse(readFileSync(join(FOLDER, sample, 'was.json'), 'utf8')) as Was
    // The programs run with a clock that is an hour later than the sample, because evidence older
    // than the window does not count.
    const at = new Date(Date.parse(was.writtenAt) + 3_600_000).toISOString().slice(0, 19).replace('T', ' ')
    // Preloads libfaketime directly. Its command would stay as the parent process.
    const faked = [
      'LD_PRELOAD=/usr/$LIB/faketime/libfaketime.so.1',
      `FAKETIME=@${at}`,
      'FAKETIME_DONT_FAKE_MONOTONIC=1',
    ]
    const then = ['env', 'TZ=UTC', ...faked, process.execPath]

    const service = await startServiceCommand([...then, PROGRAMS.service], data)
    t.teardown(() => service.child.kill('SIGKILL'))
    const admin = (...words: string[]) => adminThen(then, [...words, '--data-dir', data])

    const found = await admin('doctor')
    t.match(found, `"schema_version":${SCHEMA_VERSION},"schema_version_newest":${SCHEMA_VERSION},`)
    for (const [table, records] of Object.entries(was.tables)) {
      const now = Number(new RegExp(`"table":"${table}","records":(\\d+)`).exec(found)?.[1] ?? 0)
      t.ok(now >= records, `${table}: ${now} of ${records} records`)
    }
    for (const [name, answer] of Object.entries(was.answers)) {
      t.same(await get(service, was.key, `/api/v1/${name}`), answer, name)
    }
    const before = await discovery(service, was.key)
    t.same(before.scan, was.discovery.scan, 'the scan that was published')
    t.same(before.platforms.map(stableFields), was.discovery.platforms.map(stableFields), 'and its platforms')

    // A capture without packets: the collector only forwards waiting events.
    const nothing = join(folder, 'nothing.pcap')
    writeFileSync(nothing, pcapFile([]))
    const collector = await startCommand(
      [...then, PROGRAMS.collector, 'run', '--read', nothing, '--outbox', outbox, ...forwardArgs(service)],
      { SVC_TOKEN: was.token },
    ).ended
    t.equal(collector.status, 0, collector.stderr)
    t.match(collector.stderr, /"acknowledged":90,"duplicates":0,"rejected":0/)

    // The service has ingested this log before.
    await admin('ingest', 'file', join(FOLDER, sample, 'squid.log'), '--token', was.token)
    await admin('scan', 'run', '--org', 'Acme')
    const after = await discovery(service, was.key)
    t.not(after.scan.id, was.discovery.scan.id)
    const matches = Object.fromEntries(after.platforms.map((row) => [row.platform_name, row.metadata.matches]))
    const expected = new Map(Object.entries(demoMatches()).map(([name, count]) => [name, 3 * count]))
    expected.set('Claude', (expected.get('Claude') ?? 0) + 1)
    t.same(matches, Object.fromEntries(expected), 'scanned, buffered, waiting and logged events, each once')
    const known = new Map(was.discovery.platforms.map((row) => [row.platform_name, row.id]))
    for (const { id, platform_name } of after.platforms)
      t.equal(id, known.get(platform_name), `${platform_name} keeps its id`)
  })
}

/** The fields that an upgrade must not change. metadata may gain fields. */
function stableFields({ id, platform_name, platform_type, url, confidence, metadata }: Platform): unknown {
  const { matches, clients, first_seen } = metadata
  return { id, platform_name, platform_type, url, confidence, matches, clients, first_seen }
}

async function adminThen(then: readonly string[], words: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await startCommand([...then, PROGRAMS.admin, ...words]).ended
  if (status !== 0) throw new Error(`posture-admin ended with ${status}: ${stderr}`)
  return stdout
}

async function discovery(service: RunningService, key: string): Promise<Discovery> {
  return (await get(service, key, '/api/v1/discovery')) as Discovery
}

async function get(service: RunningService, key: string, path: string): Promise<unknown> {
  // The certificate was created by this test, so it is not verified.
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
  const url = `https://127.0.0.1:${service.apiPort}${path}`
  const { statusCode, body } = await request(url, { dispatcher, headers: { 'x-api-key': key }, reset: true })
  if (statusCode !== 200) throw new Error(`${statusCode}: ${await body.text()}`)
  return body.json()
}
