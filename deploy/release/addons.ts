import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, rename } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { basename, extname, join } from 'node:path'
import { REPOSITORY } from './bundle.ts'
import { run } from './commands.ts'
import { LIBPCAP_VERSION, libpcapSource } from './libpcap.ts'
import { CACHE, emptyFolder, npmFolder } from './npm-file.ts'
import type { AddonName } from './programs.ts'
import { GLIBC_MAX, type Target } from './targets.ts'

/*
 * Compiles the addons for a target. npm's own builds are not usable: pcap's is for the build
 * machine and its libpcap, lmdb's need glibc 2.34. The flags are those of node-gyp, except for
 * paths of the build machine. Functions that nothing calls are left out.
 */

const NATIVE = join(REPOSITORY, 'deploy/release/native')
const MODULES = join(REPOSITORY, 'node_modules')

/** From its binding.gyp. Paths begin in node_modules. */
interface Recipe {
  readonly c: readonly string[]
  readonly cc: readonly string[]
  readonly includes: readonly string[]
  readonly defines: readonly string[]
}

const LIBLMDB = 'lmdb/dependencies/lmdb/libraries/liblmdb'
const LZ4 = 'lmdb/dependencies/lz4/lib'

const RECIPES: Readonly<Partial<Record<AddonName, Recipe>>> = {
  'pcap.node': {
    c: [],
    cc: ['pcap/pcap_binding.cc', 'pcap/pcap_session.cc'],
    includes: ['nan'],
    defines: ['NODE_GYP_MODULE_NAME=pcap_binding', `PACKAGE_VERSION="${LIBPCAP_VERSION}"`],
  },
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
  const file = recipe === undefined ? await prebuilt(target) : await compiled(name, recipe, target)
  const needed = await glibcNeeded(file)
  if (isNewer(needed, GLIBC_MAX)) throw new Error(`${name} for ${target.name} needs glibc ${needed}, not ${GLIBC_MAX}`)
  return file
}

/** npm's own binary of Argon2, which needs no newer glibc than Node does. */
async function prebuilt({ nodeArch, argon2 }: Target): Promise<string> {
  return join(await npmFolder(argon2), `argon2.linux-${nodeArch}-gnu.node`)
}

async function compiled(name: AddonName, recipe: Recipe, target: Target): Promise<string> {
  const compiler = (await run(`${target.tools}g++`, ['--version'])).split('\n', 1)[0] ?? ''
  const headers = join(await npmFolder(target.node), 'include/node')
  const includes = [headers, ...recipe.includes.map((folder) => join(MODULES, folder))]
  const libpcap = name === 'pcap.node' ? await libpcapSource() : undefined
  if (libpcap !== undefined) includes.push(libpcap.folder, join(NATIVE, 'libpcap'))
  const flags = [
    ...['-O3', '-fPIC', '-pthread', '-fvisibility=hidden', '-w', '-g0', `-ffile-prefix-map=${REPOSITORY}=.`],
    ...['-ffunction-sections', '-fdata-sections'],
    ...['-D_FILE_OFFSET_BITS=64', '-D_LARGEFILE_SOURCE', '-DBUILDING_NODE_EXTENSION'],
    ...['-DUSING_UV_SHARED=1', '-DUSING_V8_SHARED=1', '-DV8_DEPRECATION_WARNINGS=1'],
    ...recipe.defines.map((define) => `-D${define}`),
    ...includes.map((folder) => `-I${folder}`),
    ...['-include', join(NATIVE, 'old-glibc.h')],
  ]
  const sources = [
    ...[...recipe.c, ...recipe.cc].map((file) => join(MODULES, file)),
    ...(libpcap?.files ?? []),
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
  const addon = join(folder, name)
  await run(`${target.tools}g++`, ['-shared', '-pthread', '-Wl,--gc-sections', '-o', addon, ...objects])
  await run(`${target.tools}strip`, ['--strip-all', addon])
  await rename(addon, made)
  return made
}

/** Identifies the inputs of the build, so that a cached addon is not used after they changed. */
async function recipeHash(flags: readonly string[], sources: readonly string[]): Promise<string> {
  const hash = createHash('sha256').update(flags.join('\0'))
  for (const source of sources) hash.update(await readFile(source))
  for (const header of ['old-glibc.h', 'libpcap/config.h']) hash.update(await readFile(join(NATIVE, header)))
  return hash.digest('hex').slice(0, 12)
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
