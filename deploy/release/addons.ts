import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, cp, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { basename, extname, join } from 'node:path'
import { REPOSITORY } from './bundle.ts'
import { run } from './commands.ts'
import { CACHE, emptyFolder, npmFolder } from './npm-file.ts'
import type { AddonName } from './programs.ts'
import { GLIBC_MAX, NODE_ABI, type Target } from './targets.ts'

/*
 * Compiles the addons for a target. npm's own builds are not usable: pcap's is for the build
 * machine and one name of libpcap, lmdb's need glibc 2.34. The flags are those of node-gyp, except
 * for paths of the build machine.
 */

const NATIVE = join(REPOSITORY, 'deploy/release/native')
const MODULES = join(REPOSITORY, 'node_modules')
const LIBPCAP_HEADERS = '/usr/include'

interface Recipe {
  /** From its binding.gyp. */
  readonly c: readonly string[]
  readonly cc: readonly string[]
  readonly includes: readonly string[]
  readonly defines: readonly string[]
  /** The host's shared library that it links to, by soname. */
  readonly library?: string
}

const LIBLMDB = 'lmdb/dependencies/lmdb/libraries/liblmdb'
const LZ4 = 'lmdb/dependencies/lz4/lib'
const PCAP = {
  c: [],
  cc: ['pcap/pcap_binding.cc', 'pcap/pcap_session.cc'],
  includes: ['nan'],
  defines: ['NODE_GYP_MODULE_NAME=pcap_binding'],
}

const RECIPES: Readonly<Partial<Record<AddonName, Recipe>>> = {
  'pcap-0.8.node': { ...PCAP, library: 'libpcap.so.0.8' },
  'pcap-1.node': { ...PCAP, library: 'libpcap.so.1' },
  'lmdb.node': {
    c: [`${LIBLMDB}/chacha8.c`, `${LIBLMDB}/mdb.c`, `${LIBLMDB}/midl.c`, `${LZ4}/lz4.c`],
    cc: [
      'compression',
      'cursor',
      'dbi',
      'env',
      'lmdb-js',
      'misc',
      'ordered-binary',
      'txn',
      'v8-functions',
      'writer',
    ].map((name) => `lmdb/src/${name}.cpp`),
    includes: ['node-addon-api', LZ4, LIBLMDB],
    defines: [
      'NODE_GYP_MODULE_NAME=lmdb',
      'MDB_MAXKEYSIZE=0',
      'MDB_USE_ROBUST',
      'NAPI_DISABLE_CPP_EXCEPTIONS',
      'ENABLE_V8_API=1',
    ],
  },
}

/**
 * Returns the addon's file for a target, from the cache or newly built. Throws an Error if it needs
 * a newer glibc than Node does.
 */
export async function addonFile(name: AddonName, target: Target): Promise<string> {
  const recipe = RECIPES[name]
  const file = recipe === undefined ? await prebuilt(name, target) : await compiled(name, recipe, target)
  const needed = await glibcNeeded(file)
  if (isNewer(needed, GLIBC_MAX)) throw new Error(`${name} for ${target.name} needs glibc ${needed}, not ${GLIBC_MAX}`)
  return file
}

/** npm's own binary, where it needs no newer glibc than Node does. */
async function prebuilt(name: AddonName, { nodeArch, argon2 }: Target): Promise<string> {
  if (name === 'argon2.node') return join(await npmFolder(argon2), `argon2.linux-${nodeArch}-gnu.node`)
  return join(MODULES, `uWebSockets.js/dist/bin/uws_linux_${nodeArch}_${NODE_ABI}.node`)
}

async function compiled(name: AddonName, recipe: Recipe, target: Target): Promise<string> {
  const compiler = (await run(`${target.tools}g++`, ['--version'])).split('\n', 1)[0] ?? ''
  const headers = join(await npmFolder(target.node), 'include/node')
  const includes = [headers, ...recipe.includes.map((folder) => join(MODULES, folder))]
  if (recipe.library !== undefined) includes.push(await libpcapHeaders())
  const flags = [
    ...['-O3', '-fPIC', '-pthread', '-fvisibility=hidden', '-w', '-g0', `-ffile-prefix-map=${REPOSITORY}=.`],
    ...['-D_FILE_OFFSET_BITS=64', '-D_LARGEFILE_SOURCE', '-DBUILDING_NODE_EXTENSION'],
    ...['-DUSING_UV_SHARED=1', '-DUSING_V8_SHARED=1', '-DV8_DEPRECATION_WARNINGS=1'],
    ...recipe.defines.map((define) => `-D${define}`),
    ...includes.map((folder) => `-I${folder}`),
    ...['-include', join(NATIVE, 'old-glibc.h')],
  ]
  const sources = [
    ...[...recipe.c, ...recipe.cc].map((file) => join(MODULES, file)),
    ...['old-glibc.c', 'old-libstdcxx.cc'].map((file) => join(NATIVE, file)),
  ]
  const made = join(CACHE, `${await recipeHash([compiler, ...flags], sources)}-${target.name}-${name}`)
  if (existsSync(made)) return made
  const folder = await emptyFolder(`${made}.build`)
  const objects = await inParallel(sources, async (source) => {
    const object = join(folder, `${basename(source)}.o`)
    const language = extname(source) === '.c' ? ['gcc'] : ['g++', '-std=gnu++17', '-fno-rtti', '-fno-exceptions']
    await run(`${target.tools}${language[0]}`, [...language.slice(1), ...flags, '-c', source, '-o', object])
    return object
  })
  const libraries = recipe.library === undefined ? [] : [await emptyLibrary(recipe.library, target, folder)]
  const addon = join(folder, name)
  await run(`${target.tools}g++`, ['-shared', '-pthread', '-o', addon, ...objects, '-Wl,--no-as-needed', ...libraries])
  await run(`${target.tools}strip`, ['--strip-all', addon])
  await rename(addon, made)
  return made
}

/** Identifies the inputs of the build, so that a cached addon is not used after they changed. */
async function recipeHash(flags: readonly string[], sources: readonly string[]): Promise<string> {
  const hash = createHash('sha256').update(flags.join('\0'))
  for (const source of sources) hash.update(await readFile(source))
  return hash
    .update(await readFile(join(NATIVE, 'old-glibc.h')))
    .digest('hex')
    .slice(0, 12)
}

/** Only libpcap's headers: their directory also contains those of the build machine's C library. */
async function libpcapHeaders(): Promise<string> {
  if (!existsSync(join(LIBPCAP_HEADERS, 'pcap/pcap.h'))) {
    throw new Error('the headers of libpcap are missing: run "apt-get install libpcap-dev"')
  }
  const folder = join(CACHE, 'libpcap-headers')
  await mkdir(folder, { recursive: true })
  await cp(join(LIBPCAP_HEADERS, 'pcap'), join(folder, 'pcap'), { recursive: true })
  await copyFile(join(LIBPCAP_HEADERS, 'pcap.h'), join(folder, 'pcap.h'))
  return folder
}

/** An empty library with this soname, sufficient to link against. */
async function emptyLibrary(soname: string, target: Target, folder: string): Promise<string> {
  const source = join(folder, 'empty.c')
  const library = join(folder, soname)
  await writeFile(source, '')
  await run(`${target.tools}gcc`, ['-shared', '-nostdlib', `-Wl,-soname,${soname}`, '-o', library, source])
  return library
}

/** The newest glibc version that a file requires. */
export async function glibcNeeded(file: string): Promise<string> {
  const versions = (await run('readelf', ['--version-info', '--wide', file])).matchAll(/Name: GLIBC_([0-9.]+)/g)
  return [...versions].map(([, version = '0']) => version).reduce((a, b) => (isNewer(b, a) ? b : a), '0')
}

/** Compares dotted versions: 2.34 is newer than 2.28, 3.4.30 than 3.4.25. */
export function isNewer(version: string, than: string): boolean {
  const [parts = [], thanParts = []] = [version, than].map((text) => text.split('.').map(Number))
  for (let at = 0; at < Math.max(parts.length, thanParts.length); at++) {
    const difference = (parts[at] ?? 0) - (thanParts[at] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return false
}

async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as T)
  }
  await Promise.all(Array.from({ length: availableParallelism() }, lane))
  return results
}
