// npm run build: compiles the sources, then the registry and the frameworks, to dist/. setup.mjs
// calls it only when the sources have changed. Plain JavaScript, because it runs before anything is
// compiled.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
/**
 * Contains the hash of the sources of dist/. Written last, so that an interrupted build is
 * repeated.
 */
const STAMP = join(root, 'dist/.built-from')
/** tsc writes this file whenever it changes dist/, even if it is called directly. */
const COMPILER_STATE = join(root, 'dist/.tsbuildinfo')
const SOURCE_FOLDERS = ['api', 'bench', 'collector', 'console', 'deploy', 'dry-run', 'engine', 'registry', 'test']
const SOURCE = /\.(ts|tsx|mjs|css|svg|yaml|tsv)$/
/** The JSON that the compiler reads. */
const CONFIGURATION = ['package.json', 'package-lock.json', 'tsconfig.json', 'console/browser/tsconfig.json']
const STEPS = [
  ['node_modules/typescript/bin/tsc', '-p', '.'],
  ['node_modules/typescript/bin/tsc', '-p', 'console/browser'],
  ['dist/registry/build.js'],
  ['dist/engine/assess/build.js'],
  ['dist/console/build.js'],
]

/** Whether dist/ is up to date with the sources. */
export function isBuilt() {
  return existsSync(STAMP) && existsSync(COMPILER_STATE) && readFileSync(STAMP, 'utf8') === stamp()
}

/** Builds and prints errors. Returns whether the build succeeded. */
export function build() {
  rmSync(STAMP, { force: true })
  // Hashed before the build: if the sources change during the build, the next one is not skipped.
  const sources = sourceHash()
  for (const step of STEPS) {
    const { status } = spawnSync(process.execPath, step, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
    if (status !== 0) return false
  }
  writeFileSync(STAMP, stamp(sources))
  return true
}

function stamp(sources = sourceHash()) {
  return `${sources} ${statSync(COMPILER_STATE).mtimeMs}\n`
}

/** Hashes content, not modification times: a checkout of the same sources needs no build. */
function sourceHash() {
  const hash = createHash('sha256')
  const add = (file) => hash.update(`${file}\n`).update(readFileSync(join(root, file)))
  for (const file of CONFIGURATION) add(file)
  for (const folder of SOURCE_FOLDERS) {
    const names = readdirSync(join(root, folder), { recursive: true }).filter((name) => SOURCE.test(name))
    for (const name of names.sort()) add(join(folder, name))
  }
  return hash.digest('hex')
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !build()) process.exit(1)
