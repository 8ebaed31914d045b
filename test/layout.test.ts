import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { REPOSITORY } from './support/programs.ts'
import { testFiles } from './support/test-files.ts'

/** Enforces the layout rules of docs/design/architecture.md. */
const TOP_FOLDERS = ['api', 'bench', 'collector', 'console', 'deploy', 'dry-run', 'engine', 'registry', 'test'] as const

/** Files and packages that each source file imports. */
type Imports = ReadonlyMap<string, readonly string[]>

function filesBelow(folder: string, wanted: (name: string) => boolean): string[] {
  return readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((name) => wanted(name) && statSync(join(REPOSITORY, name)).isFile())
}

const SOURCES = TOP_FOLDERS.flatMap((topFolder) => filesBelow(topFolder, (name) => /\.tsx?$/.test(name)))

/** Imports, re-exports, dynamic imports and worker files. Relative ones are paths from the root. */
function importsOf(file: string, leftOut?: RegExp): string[] {
  const whole = readFileSync(join(REPOSITORY, file), 'utf8')
  const text = leftOut === undefined ? whole : whole.replace(leftOut, '')
  const found = [...text.matchAll(/(?:from|import\(|import|new URL\(|require\()\s*['"]([^'"\n]+)['"]/g)].map(
    (each) => each[1] ?? '',
  )
  return found.map((name) => (name.startsWith('.') ? join(dirname(file), name).replace(/\.js$/, '.ts') : name))
}

const IMPORTS: Imports = new Map(SOURCES.map((file) => [file, importsOf(file)]))
/** Imports that load no module. */
const TYPE_IMPORTS = /^(?:import|export) type [\s\S]*?from '[^']+'$/gm
const VALUE_IMPORTS: Imports = new Map(SOURCES.map((file) => [file, importsOf(file, TYPE_IMPORTS)]))

/**
 * All that the console knows of the process that reads uploaded files: it starts the process, and
 * imports neither its code nor the collector's.
 */
const DRY_RUN_PROTOCOL = ['dry-run/limits.ts', 'dry-run/report.ts']

/**
 * The order of folders, lowest first. A folder may import itself and folders of earlier rows, but
 * none of its own row: features reach each other through the store and events.
 */
const ORDER: readonly (readonly string[])[] = [
  ['registry'],
  ['engine/limits.ts'],
  ['engine/kernel/process'],
  ['engine/kernel/event', 'engine/kernel/lmdb', 'engine/http', 'engine/cluster/log'],
  ['engine/store'],
  ['engine/formats'],
  ['engine/ingest', 'engine/scan', 'engine/cluster/replication'],
  ['engine/assess'],
  ['engine/export'],
  ['engine/export/report', 'engine/alert'],
  ['engine/check'],
  ['engine/admin'],
  ['engine/cli'],
  ['engine/admin/main.ts'],
  ['dry-run/limits.ts'],
  ['dry-run/report.ts'],
  ['console'],
  ['api'],
]

/**
 * The part of the engine that the collector may import: the ground floor that both programs share.
 */
const GROUND_FLOOR = ['engine/kernel/']

function rowOf(file: string): number {
  return ORDER.findLastIndex((row) => row.some((folder) => file === folder || file.startsWith(`${folder}/`)))
}

/** Whether one source file may import another. The console only starts the dry run as a process. */
function mayImport(from: string, to: string): boolean {
  if (from === 'console/try-file/file-process.ts' && to === 'dry-run/main.ts') return true
  if (from.startsWith('collector/')) {
    return ['collector/', 'registry/', ...GROUND_FLOOR].some((folder) => to.startsWith(folder))
  }
  if (from.startsWith('dry-run/') && !DRY_RUN_PROTOCOL.includes(from)) {
    return ['dry-run/', 'collector/', 'registry/', 'engine/'].some((folder) => to.startsWith(folder))
  }
  const row = rowOf(from)
  if (row === -1) return !/^(api|collector|console|dry-run|engine|registry)\//.test(from)
  return (ORDER[row] ?? []).some((folder) => from.startsWith(folder) && to.startsWith(folder)) || inOrder(row, to)
}

function inOrder(row: number, to: string): boolean {
  const below = rowOf(to)
  return below !== -1 && below < row
}

function forbidden(imports: Imports): string[] {
  return [...imports].flatMap(([from, all]) =>
    all
      .filter((to) => TOP_FOLDERS.some((topFolder) => to.startsWith(`${topFolder}/`)) && !mayImport(from, to))
      .map((to) => `${from} -> ${to}`),
  )
}

/**
 * In these folders, each file directly in the folder is a node: files that everything below reads
 * (limits, settings), and files that wire everything.
 */
const WIRED_FOLDERS = new Set(['collector', 'console', 'dry-run', 'engine', 'engine/admin'])

/** Imports between folders. An entry point (`main.ts`) is above its folder. */
function betweenFolders(imports: Imports): Imports {
  const nodeOf = (file: string): string =>
    WIRED_FOLDERS.has(dirname(file)) || file.endsWith('/main.ts') ? file : dirname(file)
  const folders = new Map<string, string[]>()
  for (const [from, all] of imports) {
    const node = nodeOf(from)
    const others = all.filter((to) => imports.has(to) && nodeOf(to) !== node).map(nodeOf)
    folders.set(node, [...(folders.get(node) ?? []), ...others])
  }
  return folders
}

/**
 * Nodes that form an import cycle, or undefined. Type imports count, because a reader has to follow
 * them as well.
 */
function cycle(imports: Imports): string[] | undefined {
  const done = new Set<string>()
  const walk = (file: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (done.has(file)) return undefined
    for (const next of imports.get(file) ?? []) {
      const found = imports.has(next) ? walk(next, [...path, file]) : undefined
      if (found !== undefined) return found
    }
    done.add(file)
    return undefined
  }
  for (const file of imports.keys()) {
    const found = walk(file, [])
    if (found !== undefined) return found
  }
  return undefined
}

function reachable(imports: Imports, entries: readonly string[]): Set<string> {
  const seen = new Set<string>()
  const waiting = [...entries]
  while (waiting.length > 0) {
    const file = waiting.pop() ?? ''
    if (seen.has(file)) continue
    seen.add(file)
    waiting.push(...(imports.get(file) ?? []))
  }
  return seen
}

t.test('imports follow the order of folders', async (t) => {
  t.same(forbidden(IMPORTS), [])
  const upward: Imports = new Map([
    ['engine/admin/a.ts', ['api/b.ts']],
    ['registry/a.ts', ['engine/kernel/event/event.ts']],
    ['collector/a.ts', ['engine/store/store.ts', 'engine/kernel/event/event.ts', 'engine/limits.ts']],
    ['engine/store/a.ts', ['engine/ingest/b.ts', 'engine/kernel/lmdb/queue.ts', 'engine/limits.ts']],
    ['engine/scan/a.ts', ['engine/ingest/b.ts', 'engine/scan/b.ts', 'engine/store/store.ts']],
    ['engine/new-folder/a.ts', ['engine/store/store.ts']],
    ['console/a.ts', ['dry-run/report.ts', 'dry-run/read-file.ts', 'collector/coverage.ts']],
    ['dry-run/a.ts', ['collector/coverage.ts', 'engine/ingest/message-pipeline.ts', 'console/server.ts']],
  ])
  t.same(forbidden(upward), [
    'engine/admin/a.ts -> api/b.ts',
    'registry/a.ts -> engine/kernel/event/event.ts',
    'collector/a.ts -> engine/store/store.ts',
    'collector/a.ts -> engine/limits.ts',
    'engine/store/a.ts -> engine/ingest/b.ts',
    'engine/scan/a.ts -> engine/ingest/b.ts',
    'engine/new-folder/a.ts -> engine/store/store.ts',
    'console/a.ts -> dry-run/read-file.ts',
    'console/a.ts -> collector/coverage.ts',
    'dry-run/a.ts -> console/server.ts',
  ])
})

t.test('no file or folder is in an import cycle', async (t) => {
  const sources = new Map(
    [...IMPORTS].filter(([file]) => /^(api|collector|console|dry-run|engine|registry)\//.test(file)),
  )
  t.equal(cycle(IMPORTS)?.join(' -> '), undefined)
  t.equal(cycle(betweenFolders(sources))?.join(' -> '), undefined)
  const files: Imports = new Map([
    ['engine/a/one.ts', ['engine/b/one.ts']],
    ['engine/b/one.ts', []],
    ['engine/b/two.ts', ['engine/a/one.ts', 'engine/b/one.ts']],
  ])
  t.equal(cycle(files), undefined)
  t.same(cycle(betweenFolders(files)), ['engine/a', 'engine/b', 'engine/a'])
})

t.test('the collector ships with these packages and no others', async (t) => {
  const closure = [...reachable(IMPORTS, ['collector/main.ts'])]
  const packages = closure.filter((name) => !/\.(ts|json|pcap)$|^node:|\/$/.test(name))
  // Plus pcap, whose addon collector/capture/live.ts loads with require.
  t.same(packages.sort(), [
    ...[
      'cli-progress',
      'cli-table3',
      'commander',
      'csv-stringify/sync',
      'fzstd',
      'lmdb',
      'msgpackr',
      'pino',
      'pino-pretty',
      'piscina',
    ],
    ...['proxy-from-env', 'string-width', 'yaml', 'zod'],
  ])
})

t.test('threads that listen load what they rarely need later', async (t) => {
  const later = /^(?:import|export) type [\s\S]*?from '[^']+'$|(?<!from )\b(?:import|require)\('[^']+'\)/gm
  const atStart: Imports = new Map(SOURCES.map((file) => [file, importsOf(file, later)]))
  for (const thread of ['api/thread.ts', 'console/thread.ts']) {
    const loaded = [...reachable(atStart, [thread])]
    t.same(
      loaded.filter((name) => /^(selfsigned|yaml|@simplewebauthn|openid-client)/.test(name)),
      [],
      thread,
    )
    t.ok(loaded.includes('lmdb'))
    // Several MB in each of several threads.
    if (thread === 'api/thread.ts') t.notOk(loaded.includes('zod'), thread)
  }
})

t.test('the process that reads uploaded files loads no native library', async (t) => {
  // With types only, which reach lmdb, no module is loaded.
  const loaded = [...reachable(VALUE_IMPORTS, ['dry-run/main.ts'])]
  t.same(
    loaded.filter((name) => /^(lmdb|pcap|@node-rs|piscina)/.test(name)),
    [],
  )
  t.ok(loaded.includes('collector/decode/decode-batch.ts') && loaded.includes('fzstd'))
})

t.test('one file loads uWebSockets.js, and two know that it exists', async (t) => {
  const library = 'engine/http/uws-library.ts'
  const importers = [...IMPORTS].filter(([, all]) => all.includes(library)).map(([file]) => file)
  t.same(importers, ['engine/http/listen.ts', 'engine/http/uws.ts', 'test/engine/http/uws.full.test.ts'])
})

t.test('every file is reached from a program, a worker, a build step, a benchmark or a test', async (t) => {
  const entries = [
    ...['api/main.ts', 'collector/main.ts', 'dry-run/main.ts', 'engine/admin/main.ts', 'bench/main.ts'],
    ...[
      'deploy/demo.ts',
      'deploy/docs/main.ts',
      'deploy/docs/console-pictures.ts',
      'deploy/docs/receiver.ts',
      'deploy/docs/registry-update.ts',
      'deploy/release/embedded/compile-cache.ts',
      'deploy/release/main.ts',
      'deploy/release/registry-main.ts',
      'deploy/release/registry-key-main.ts',
      'deploy/registry-gaps.ts',
      'registry/build.ts',
      'console/build.ts',
      'console/browser/console.ts',
      'console/browser/passkeys.ts',
      'engine/assess/build.ts',
      'test/captures/build.ts',
      'test/registry/popular/build.ts',
    ],
    ...['test/run.ts', 'test/captures/compare.ts', 'test/fuzz/main.ts', 'test/crash/main.ts', 'test/upgrade/write.ts'],
    ...SOURCES.filter((file) => file.endsWith('.test.ts')),
  ]
  const alive = reachable(IMPORTS, entries)
  t.same(
    SOURCES.filter((file) => !alive.has(file)),
    [],
  )
})

/** Start programs that only the set-up of the full suite installs. */
const NEEDS_FULL_SETUP =
  /^test\/support\/(?:brokers|capture-site|container|debian|forwarders|rsyslog|syslog-ng|syslog-ng-process|web-browser)\.ts$/

t.test('npm test needs no program that only the full suite installs', async (t) => {
  const entries = testFiles().flatMap(({ source, suite }) => (suite === 'quick' ? [source] : []))
  const needing = entries.filter((entry) =>
    [...reachable(VALUE_IMPORTS, [entry])].some((file) => NEEDS_FULL_SETUP.test(file)),
  )
  t.same(needing, [])
  const named = SOURCES.filter((file) => NEEDS_FULL_SETUP.test(file))
  t.equal(named.length, 9)
})

t.test('the sources have no marker of unfinished work', async (t) => {
  const markers = new RegExp(['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK', '\\.on' + 'ly\\('].join('|'))
  const marked = SOURCES.filter((file) => markers.test(readFileSync(join(REPOSITORY, file), 'utf8')))
  t.same(marked, [])
  t.match('// TO' + 'DO later', markers)
})

t.test('the lock file names no registry', async (t) => {
  t.notMatch(readFileSync(join(REPOSITORY, 'package-lock.json'), 'utf8'), /"resolved"/)
})
