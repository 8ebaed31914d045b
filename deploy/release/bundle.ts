import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Metafile, type Plugin } from 'esbuild'
import { PARTS, VIRTUAL_ROOT } from './embedded/parts.ts'
import type { Program } from './programs.ts'

/*
 * Bundles a program and each of its threads into a CommonJS file, the format that a single
 * executable requires. Paths of files next to the sources become names of parts
 * (embedded/parts.ts). Modules in embedded/ replace some of Node's.
 */

export const REPOSITORY = resolve(dirname(fileURLToPath(import.meta.url)), '../../..')
const DIST = join(REPOSITORY, 'dist')
const EMBEDDED = join(DIST, 'deploy/release/embedded')
const PISCINA_WORKER = 'node_modules/piscina/dist/worker.js'

/** Replacements for Node modules that access files. */
const REPLACEMENTS: Readonly<Record<string, URL>> = {
  'node:fs': new URL('./embedded/fs.js', import.meta.url),
  'node:worker_threads': new URL('./embedded/worker-threads.js', import.meta.url),
  'node:child_process': new URL('./embedded/child-process.js', import.meta.url),
}
const ADDON_LOADER = fileURLToPath(new URL('./embedded/addons.js', import.meta.url))

export interface Bundle {
  /** Contents by part name. */
  readonly parts: ReadonlyMap<string, Buffer>
  /** The bundled files, as paths from the repository's root. */
  readonly inputs: ReadonlySet<string>
}

/**
 * Bundles a program's commands and threads. Throws esbuild's errors, and an Error if a source
 * violates the rules below.
 */
export async function bundle(program: Program): Promise<Bundle> {
  const parts = new Map<string, Buffer>()
  const inputs = new Set<string>()
  const entries: [part: string, text: string][] = [
    ...program.commands.map(
      ({ name, entry }) => [`${name}.cjs`, commandText(entry, program.steps)] as [string, string],
    ),
    ...[...program.threads, ...program.processes, ...program.preloads].map(
      (file) => [partOf(file), `require(${source(file)})`] as [string, string],
    ),
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
      // V8 keeps the source text in memory, so whitespace is removed. Names and lines are kept for
      // stack traces.
      minifyWhitespace: true,
      lineLimit: 120,
      logLevel: 'error',
      // Optional native modules: of msgpackr, and of piscina for thread priorities, which are not
      // used.
      external: ['msgpackr-extract', '@napi-rs/nice'],
      plugins: [replacements, addons, englishOnly, ownPath],
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

/** Of package.json, only name and version. */
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

/**
 * A command is its main file. If a parent process is connected, it is the step whose file is the
 * first argument.
 */
function commandText(entry: string, steps: readonly string[]): string {
  const cases = steps.map((file) => `case ${JSON.stringify(VIRTUAL_ROOT + file)}: require(${source(file)}); break`)
  return `switch (process.connected ? process.argv[2] : undefined) { ${cases.join('\n')}\ndefault: require(${source(entry)}) }`
}

/** A pool thread loads its task by name. */
function poolText(tasks: readonly string[]): string {
  const loaders = tasks.map((file) => `${JSON.stringify(VIRTUAL_ROOT + file)}: () => require(${source(file)})`)
  return `globalThis.postureTasks = { ${loaders.join(', ')} }; require(${source(PISCINA_WORKER)})`
}

function filesOf(metafile: Metafile): string[] {
  return Object.keys(metafile.inputs).filter((name) => !name.includes(':') && name.includes('/'))
}

const replacements: Plugin = {
  name: 'replacements',
  setup(build) {
    build.onResolve({ filter: /^node:(fs|worker_threads|child_process)$/ }, ({ path, importer }) => {
      const ours = importer.startsWith(DIST) && !importer.startsWith(EMBEDDED)
      const pool = path === 'node:worker_threads' && importer.includes('/node_modules/piscina/')
      const file = REPLACEMENTS[path]
      return (ours || pool) && file !== undefined ? { path: fileURLToPath(file) } : undefined
    })
  },
}

/** Replacements for modules that load an addon. The path of the embedded loader is prepended. */
const ADDON_MODULES: readonly { readonly filter: RegExp; readonly text: string }[] = [
  { filter: /^pcap\/build\/Release\/pcap_binding\.node$/, text: "module.exports = loadAddon('pcap.node')" },
  { filter: /^@node-rs\/argon2$/, text: "module.exports = loadAddon('argon2.node')" },
  // The module with which lmdb finds its addon.
  { filter: /^node-gyp-build-optional-packages$/, text: "module.exports = () => loadAddon('lmdb.node')" },
]

const addons: Plugin = {
  name: 'addons',
  setup(build) {
    for (const { filter, text } of ADDON_MODULES) {
      const importers = new Set<string>()
      build.onResolve({ filter }, ({ path, importer }) => {
        importers.add(importer)
        // A library loaded both as ES module and as CommonJS has its state twice, but the addon
        // works with only one.
        if (importers.size > 1)
          throw new Error(`${path} is imported by ${[...importers].join(' and ')}; expected one importer`)
        return { path, namespace: 'addon', pluginData: text }
      })
    }
    build.onLoad({ filter: /.*/, namespace: 'addon' }, ({ pluginData }) => ({
      contents: `const { loadAddon } = require(${JSON.stringify(ADDON_LOADER)}); ${pluginData}`,
      resolveDir: REPOSITORY,
    }))
  },
}

/** Of zod's messages in 50 languages, only English. The others take 300 KB of each bundle. */
const englishOnly: Plugin = {
  name: 'English only',
  setup(build) {
    build.onLoad({ filter: /\/node_modules\/zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js'",
    }))
  },
}

/**
 * The path of a file becomes its path below VIRTUAL_ROOT. Required files become part of the bundle.
 */
const ownPath: Plugin = {
  name: 'own path',
  setup(build) {
    build.onLoad({ filter: /\.m?js$/ }, ({ path }) => {
      const place = VIRTUAL_ROOT + relative(REPOSITORY, path)
      let contents = readFileSync(path, 'utf8')
      if (path.startsWith(DIST)) {
        contents = contents
          // CommonJS has no top-level await. In these sources, it is always the last statement of a
          // file.
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
