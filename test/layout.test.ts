import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { REPOSITORY } from './support/programs.ts'
import { hasProperties, testFile, testFiles } from './support/test-files.ts'

/** The rules of the house (docs/design/architecture.md), so that they stay true. */
const ROOMS = ['api', 'bench', 'collector', 'console', 'deploy', 'engine', 'registry', 'test'] as const

/** For each source file the files and packages that it imports. */
type Imports = ReadonlyMap<string, readonly string[]>

function filesBelow(folder: string, wanted: (name: string) => boolean): string[] {
  return readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((name) => wanted(name) && statSync(join(REPOSITORY, name)).isFile())
}

const SOURCES = ROOMS.flatMap((room) => filesBelow(room, (name) => /\.tsx?$/.test(name)))

/** Imports, re-exports, dynamic imports and worker files, relative ones as paths from the root. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(REPOSITORY, file), 'utf8')
  const found = [...text.matchAll(/(?:from|import\(|import|new URL\(|require\()\s*['"]([^'"\n]+)['"]/g)].map(
    (each) => each[1] ?? '',
  )
  return found.map((name) => (name.startsWith('.') ? join(dirname(file), name).replace(/\.js$/, '.ts') : name))
}

const IMPORTS: Imports = new Map(SOURCES.map((file) => [file, importsOf(file)]))

/**
 * The folders whose order is fixed, lowest first. A folder imports itself and folders of an earlier row, and none of its own row:
 * features reach each other through the store and events. `engine/limits.ts` is one file that every row reads.
 */
const ORDER: readonly (readonly string[])[] = [
  ['registry'],
  ['engine/limits.ts'],
  ['engine/process'],
  ['engine/event', 'engine/lmdb', 'engine/http'],
  ['engine/store'],
  ['engine/ingest', 'engine/scan', 'engine/assess'],
  ['engine/check'],
  ['engine/admin'],
  ['console'],
  ['api'],
]

/** What the collector imports of the engine: the ground floor that both programs share. */
const GROUND_FLOOR = ['engine/event/', 'engine/lmdb/', 'engine/process/']

function rowOf(file: string): number {
  return ORDER.findIndex((row) => row.some((folder) => file === folder || file.startsWith(`${folder}/`)))
}

/** Whether a file may import another of ours. */
function mayImport(from: string, to: string): boolean {
  if (from.startsWith('collector/')) {
    return ['collector/', 'registry/', ...GROUND_FLOOR].some((folder) => to.startsWith(folder))
  }
  const row = rowOf(from)
  if (row === -1) return !/^(api|collector|console|engine|registry)\//.test(from)
  return (ORDER[row] ?? []).some((folder) => from.startsWith(folder) && to.startsWith(folder)) || inOrder(row, to)
}

function inOrder(row: number, to: string): boolean {
  const below = rowOf(to)
  return below !== -1 && below < row
}

function forbidden(imports: Imports): string[] {
  return [...imports].flatMap(([from, all]) =>
    all
      .filter((to) => ROOMS.some((room) => to.startsWith(`${room}/`)) && !mayImport(from, to))
      .map((to) => `${from} -> ${to}`),
  )
}

/** Files directly in these folders are nodes of their own: what everything below reads (limits, settings), and what wires it. */
const WIRED_FOLDERS = new Set(['collector', 'console', 'engine', 'engine/admin'])

/** The same imports between folders. An entry point (`main.ts`) is above its folder. */
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

/** Nodes that import each other, or undefined. Type imports count: they bind as firmly for the reader. */
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

t.test('imports run one way, folder by folder', async (t) => {
  t.same(forbidden(IMPORTS), [])
  const upward: Imports = new Map([
    ['engine/admin/a.ts', ['api/b.ts']],
    ['registry/a.ts', ['engine/event/event.ts']],
    ['collector/a.ts', ['engine/store/store.ts', 'engine/event/event.ts', 'engine/limits.ts']],
    ['engine/store/a.ts', ['engine/ingest/b.ts', 'engine/lmdb/queue.ts', 'engine/limits.ts']],
    ['engine/scan/a.ts', ['engine/ingest/b.ts', 'engine/scan/b.ts', 'engine/store/store.ts']],
    ['engine/new-folder/a.ts', ['engine/store/store.ts']],
  ])
  t.same(forbidden(upward), [
    'engine/admin/a.ts -> api/b.ts',
    'registry/a.ts -> engine/event/event.ts',
    'collector/a.ts -> engine/store/store.ts',
    'collector/a.ts -> engine/limits.ts',
    'engine/store/a.ts -> engine/ingest/b.ts',
    'engine/scan/a.ts -> engine/ingest/b.ts',
    'engine/new-folder/a.ts -> engine/store/store.ts',
  ])
})

t.test('no file and no folder imports itself through others', async (t) => {
  const sources = new Map([...IMPORTS].filter(([file]) => /^(api|collector|console|engine|registry)\//.test(file)))
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

const SOURCE_LINES_MAX = 450

t.test(`no source file has more than ${SOURCE_LINES_MAX} lines`, async (t) => {
  const long = SOURCES.filter((file) => /^(api|collector|console|engine|registry)\//.test(file))
    .map((file) => ({ file, lines: readFileSync(join(REPOSITORY, file), 'utf8').split('\n').length - 1 }))
    .filter(({ lines }) => lines > SOURCE_LINES_MAX)
  t.same(long, [])
})

t.test('the collector ships with these packages and no others', async (t) => {
  const closure = [...reachable(IMPORTS, ['collector/main.ts'])]
  const packages = closure.filter((name) => !/\.(ts|json|pcap)$|^node:|\/$/.test(name))
  // And pcap, whose addon collector/capture/live.ts loads by require.
  t.same(packages.sort(), [
    ...['cli-progress', 'cli-table3', 'commander', 'fzstd', 'lmdb', 'msgpackr', 'pino', 'pino-pretty', 'piscina'],
    ...['prom-client'],
    ...['proxy-from-env', 'string-width', 'yaml', 'zod'],
  ])
})

t.test('one file touches uWebSockets.js', async (t) => {
  // The peer of the benchmark is the library itself.
  const touching = [...IMPORTS].filter(([, all]) => all.includes('uWebSockets.js')).map(([file]) => file)
  t.same(touching, ['bench/peers/bare-uws.ts', 'engine/http/uws.ts'])
})

t.test('every file is reached from a program, a worker, a build step, a benchmark or a test', async (t) => {
  const entries = [
    ...['api/main.ts', 'collector/main.ts', 'engine/admin/main.ts', 'bench/main.ts'],
    ...[
      'deploy/demo.ts',
      'deploy/docs/main.ts',
      'deploy/docs/readability.ts',
      'deploy/release/main.ts',
      'registry/build.ts',
      'console/build.ts',
      'console/browser/console.ts',
      'engine/assess/build.ts',
      'test/captures/build.ts',
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

t.test('each test file is run by exactly one of npm test and the rest of npm run test:full', async (t) => {
  const quick = testFiles().filter(({ suite }) => suite === 'quick')
  const full = testFiles().filter(({ suite }) => suite === 'full')
  const sources = SOURCES.filter((file) => file.endsWith('.test.ts'))
  t.same([...quick, ...full].map(({ source }) => source).sort(), sources.toSorted())
  t.ok(quick.length > 100 && full.length > 10)
  t.match(testFile('test/a.test.ts'), { suite: 'quick' })
  t.match(testFile('test/a.full.test.ts'), { suite: 'full' })
})

t.test('one file configures fast-check', async (t) => {
  const importing = [...IMPORTS].filter(([, all]) => all.includes('fast-check')).map(([file]) => file)
  t.same(importing, ['test/support/property.ts'])
  t.ok(hasProperties(testFile('test/engine/ingest/redact.test.ts')))
  t.notOk(hasProperties(testFile('test/layout.test.ts')))
})

t.test('no marker of unfinished work is left', async (t) => {
  const markers = new RegExp(['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK', '\\.on' + 'ly\\('].join('|'))
  const marked = SOURCES.filter((file) => markers.test(readFileSync(join(REPOSITORY, file), 'utf8')))
  t.same(marked, [])
  t.match('// TO' + 'DO later', markers)
})

t.test('the lock file names no registry', async (t) => {
  t.notMatch(readFileSync(join(REPOSITORY, 'package-lock.json'), 'utf8'), /"resolved"/)
})

/** uWebSockets.js comes repacked by a third party: a changed binary must be noticed (docs/design/decisions.md). */
const UWS_BINARIES = [
  {
    name: 'uws_linux_x64_115.node',
    node: 20,
    sha256: '6f8d96d761a64beddb060f1f7f0e617dd293ed127ec1d57507aa561a0083171e',
  },
  {
    name: 'uws_linux_x64_127.node',
    node: 22,
    sha256: '8cabc918bbf9a07323e54f89a33882491080b2eb35df0607f473ccdb1f3c31af',
  },
]
for (const { name, node, sha256 } of UWS_BINARIES) {
  t.test(`the binary of uWebSockets.js for Node ${node} is the one that was looked at`, async (t) => {
    const bytes = readFileSync(join(REPOSITORY, 'node_modules/uWebSockets.js/dist/bin', name))
    t.equal(createHash('sha256').update(bytes).digest('hex'), sha256)
    const decisions = readFileSync(join(REPOSITORY, 'docs/design/decisions.md'), 'utf8')
    t.ok(decisions.includes(sha256), 'docs/design/decisions.md records it')
  })
}
