import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Metafile, type Plugin } from 'esbuild'
import { PARTS, VIRTUAL_ROOT } from './embedded/parts.ts'
import type { Program } from './programs.ts'

/*
 * Puts a program and its threads together, each as one file of CommonJS, which a single executable's main script has to be. Where the sources
 * name files beside them, the bundle names parts (embedded/parts.ts); four modules of Node are stood for by embedded/.
 */

export const REPOSITORY = resolve(dirname(fileURLToPath(import.meta.url)), '../../..')
const DIST = join(REPOSITORY, 'dist')
const EMBEDDED = join(DIST, 'deploy/release/embedded')
const PISCINA_WORKER = 'node_modules/piscina/dist/worker.js'

/** Modules of Node that look for files, and what stands for them. */
const REPLACEMENTS: Readonly<Record<string, URL>> = {
  'node:fs': new URL('./embedded/fs.js', import.meta.url),
  'node:worker_threads': new URL('./embedded/worker-threads.js', import.meta.url),
  'node:child_process': new URL('./embedded/child-process.js', import.meta.url),
}
const ADDON_LOADER = fileURLToPath(new URL('./embedded/addons.js', import.meta.url))

export interface Bundle {
  /** Name of the part, and its text. */
  readonly parts: ReadonlyMap<string, Buffer>
  /** Files of the repository that went into it, as paths from its root. */
  readonly inputs: ReadonlySet<string>
}

/** Bundles a program's commands and threads. Throws what esbuild throws, and an Error where a source is not as the rules below expect. */
export async function bundle(program: Program): Promise<Bundle> {
  const parts = new Map<string, Buffer>()
  const inputs = new Set<string>()
  const entries: [part: string, text: string][] = [
    ...program.commands.map(
      ({ name, entry }) => [`${name}.cjs`, commandText(entry, program.steps)] as [string, string],
    ),
    ...program.threads.map((file) => [partOf(file), `require(${source(file)})`] as [string, string]),
    [partOf(PISCINA_WORKER), poolText(program.tasks)],
  ]
  for (const [name, text] of entries) {
    const { outputFiles, metafile } = await build({
      stdin: { contents: text, resolveDir: REPOSITORY, sourcefile: name },
      bundle: true,
      platform: 'node',
      format: 'cjs',
      target: 'node22',
      write: false,
      metafile: true,
      absWorkingDir: REPOSITORY,
      legalComments: 'none',
      // V8 keeps the text: what it need not hold is memory saved. Names and lines stay, for stacks.
      minifyWhitespace: true,
      lineLimit: 120,
      logLevel: 'error',
      // Native parts that their users do without: of msgpackr, and of piscina for priorities that we do not set.
      external: ['msgpackr-extract', '@napi-rs/nice'],
      plugins: [replacements, addons, ownPlace],
      outfile: name,
    })
    const [output] = outputFiles
    if (output === undefined) throw new Error(`${name}: esbuild wrote nothing`)
    parts.set(name, Buffer.from(output.contents))
    for (const input of filesOf(metafile)) inputs.add(input)
  }
  for (const file of program.files) parts.set(partOf(file), fileBytes(file))
  return { parts, inputs }
}

/** Of package.json only what a program says of itself. */
function fileBytes(file: string): Buffer {
  const bytes = readFileSync(join(REPOSITORY, file))
  if (file !== 'package.json') return bytes
  const { name, version } = JSON.parse(bytes.toString()) as Record<string, string>
  return Buffer.from(JSON.stringify({ name, version }))
}

function partOf(file: string): string {
  const name = PARTS[file]
  if (name === undefined) throw new Error(`${file} has no name in embedded/parts.ts`)
  return name
}

function source(file: string): string {
  return JSON.stringify(join(REPOSITORY, file))
}

/** A command is its main file, or the process of a step where the first argument names its file and a parent listens. */
function commandText(entry: string, steps: readonly string[]): string {
  const cases = steps.map((file) => `case ${JSON.stringify(VIRTUAL_ROOT + file)}: require(${source(file)}); break`)
  return `switch (process.connected ? process.argv[2] : undefined) { ${cases.join('\n')}\ndefault: require(${source(entry)}) }`
}

/** A thread of a pool loads its task by name. */
function poolText(tasks: readonly string[]): string {
  const loaders = tasks.map((file) => `${JSON.stringify(VIRTUAL_ROOT + file)}: () => require(${source(file)})`)
  return `globalThis.postureTasks = { ${loaders.join(', ')} }; require(${source(PISCINA_WORKER)})`
}

function filesOf(metafile: Metafile): string[] {
  return Object.keys(metafile.inputs).filter((name) => !name.includes(':') && name.includes('/'))
}

const replacements: Plugin = {
  name: 'stand-ins',
  setup(build) {
    build.onResolve({ filter: /^node:(fs|worker_threads|child_process)$/ }, ({ path, importer }) => {
      const ours = importer.startsWith(DIST) && !importer.startsWith(EMBEDDED)
      const pool = path === 'node:worker_threads' && importer.includes('/node_modules/piscina/')
      const file = REPLACEMENTS[path]
      return (ours || pool) && file !== undefined ? { path: fileURLToPath(file) } : undefined
    })
  },
}

/** What stands for modules that load an addon; the path of the embedded loader is put before. */
const ADDON_MODULES: readonly { readonly filter: RegExp; readonly text: string }[] = [
  { filter: /^pcap\/build\/Release\/pcap_binding\.node$/, text: 'module.exports = loadPcapAddon()' },
  { filter: /^uWebSockets\.js$/, text: "module.exports = loadAddon('uws.node')" },
  { filter: /^@node-rs\/argon2$/, text: "module.exports = loadAddon('argon2.node')" },
  // What lmdb finds its addon with.
  { filter: /^node-gyp-build-optional-packages$/, text: "module.exports = () => loadAddon('lmdb.node')" },
]

const addons: Plugin = {
  name: 'addons',
  setup(build) {
    for (const { filter, text } of ADDON_MODULES) {
      const importers = new Set<string>()
      build.onResolve({ filter }, ({ path, importer }) => {
        importers.add(importer)
        // As a module and as CommonJS a library has its state twice, and the addon serves only one of the two.
        if (importers.size > 1) throw new Error(`${path} has two users, ${[...importers].join(' and ')}: one must go`)
        return { path, namespace: 'addon', pluginData: text }
      })
    }
    build.onLoad({ filter: /.*/, namespace: 'addon' }, ({ pluginData }) => ({
      contents: `const { loadAddon, loadPcapAddon } = require(${JSON.stringify(ADDON_LOADER)}); ${pluginData}`,
      resolveDir: REPOSITORY,
    }))
  },
}

/** What a file says of its own place becomes its place below VIRTUAL_ROOT; what it requires becomes part of the bundle. */
const ownPlace: Plugin = {
  name: 'own place',
  setup(build) {
    build.onLoad({ filter: /\.m?js$/ }, ({ path }) => {
      const place = VIRTUAL_ROOT + relative(REPOSITORY, path)
      let contents = readFileSync(path, 'utf8')
      if (path.startsWith(DIST)) {
        contents = contents
          // CommonJS has no await at the top; each of ours is the last statement of its file.
          .replace(/^await (?=\w+\()/gm, '')
          .replace(/^const require = createRequire\(import\.meta\.url\);$/m, '')
          .replaceAll('createRequire(import.meta.url)(', 'require(')
      }
      if (path.includes('/node_modules/piscina/')) {
        contents = contents
          .replaceAll('__dirname', JSON.stringify(dirname(place)))
          .replace('__importStar(require(s))', '__importStar(globalThis.postureTasks[s]())')
      }
      contents = contents.replaceAll('import.meta.url', JSON.stringify(`file://${place}`))
      return { contents, loader: 'js' }
    })
  },
}
