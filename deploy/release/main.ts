import { readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { Option } from 'commander'
import { makeDirectory } from '../../engine/kernel/process/directory.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { createProgram, runProgram } from '../../engine/kernel/process/program.ts'
import { addonFile } from './addons.ts'
import { type Bundle, bundle, REPOSITORY } from './bundle.ts'
import { assertTools } from './commands.ts'
import { packageFile, writePackage } from './debian.ts'
import { writeExecutable } from './executable.ts'
import {
  moveFile,
  packFolder,
  type Release,
  releaseOfClone,
  workFolder,
  writeChecksum,
  writeSignature,
} from './files.ts'
import { licensesText, packagesInside } from './packages-inside.ts'
import { COLLECTOR, PROGRAMS, type Program } from './programs.ts'
import { privateKeyIn } from './registry-signing.ts'
import { sbomText } from './sbom.ts'
import { shellFiles } from './shell-files.ts'
import { TARGETS, type Target } from './targets.ts'
import { type Ingredients, writeTree } from './tree.ts'

/*
 * npm run release: everything that users install, for each target, each file with its SHA-256 and,
 * with a key, its signature. Two runs on the same commit produce the same bytes.
 */

// Makes the modes of directories independent of the user.
process.umask(0o022)
const program = createProgram(
  'npm run release --',
  'Build executables, archives, Debian packages and their bills of materials',
)
  .addOption(
    new Option('--machine <name...>', 'Build for these machines').choices(TARGETS.map(({ name }) => name)).default(
      TARGETS.filter(({ tools }) => tools === '').map(({ name }) => name),
      'this machine',
    ),
  )
  .option('--out <folder>', 'Write files to this folder', 'release')
  .option('--key <file>', 'Sign each file with this Ed25519 private key (PEM)')
  .option('--quiet', 'Do not print file names')
interface Options {
  readonly machine: readonly string[]
  readonly out: string
  readonly key?: string
  readonly quiet?: boolean
}
program.action(async ({ machine, out, key: keyFile, quiet }: Options) => {
  const key = keyFile === undefined ? undefined : privateKeyIn('--key', keyFile)
  const targets = TARGETS.filter(({ name }) => machine.includes(name))
  assertTools(targets.map(({ tools }) => tools))
  const release = await releaseOfClone()
  const folder = resolve(REPOSITORY, out)
  makeFolder(folder)
  for (const each of PROGRAMS) {
    const bundled = await bundle(each)
    for (const target of targets) {
      for (const file of await build(each, target, bundled, release, folder)) {
        await writeChecksum(file)
        if (key !== undefined) await writeSignature(file, key)
        if (quiet !== true) process.stdout.write(`${file}\n`)
      }
    }
  }
})
await runProgram(program)

function makeFolder(folder: string): void {
  try {
    makeDirectory(folder, 0o755)
  } catch (error) {
    throw new Fault('USAGE', `--out ${folder}: cannot be made here (${(error as NodeJS.ErrnoException).code})`, {
      cause: error,
    })
  }
}

/** Builds one program for one target. Returns the written files. */
async function build(
  program: Program,
  target: Target,
  { parts, inputs }: Bundle,
  release: Release,
  folder: string,
): Promise<string[]> {
  const name = `${program.name}-${release.version}-linux-${target.name}`
  reportProgress(`${name}`)
  const addons = new Map<string, string>()
  for (const addon of program.addons) addons.set(addon, await addonFile(addon, target))
  const packages = await packagesInside(program, inputs, target)
  const documents = new Map([
    ['LICENSE', await readFile(join(REPOSITORY, 'LICENSE'), 'utf8')],
    ['THIRD-PARTY-LICENSES.txt', licensesText(packages)],
    ['sbom.cdx.json', sbomText(program, target, release, packages)],
  ])
  const shell = shellFiles(program.commands, release)
  const ingredients: Ingredients = { program, target, parts, addons, documents, shell }
  const [sbom, licenses] = [join(folder, `${name}.cdx.json`), join(folder, `${name}.licenses.txt`)]
  await writeFile(sbom, documents.get('sbom.cdx.json') ?? '')
  await writeFile(licenses, documents.get('THIRD-PARTY-LICENSES.txt') ?? '')
  const written = [sbom, licenses, await archive(ingredients, release, join(folder, `${name}.tar.gz`))]
  const deb = join(folder, packageFile(program, target, release))
  await writePackage(ingredients, release, deb)
  written.push(deb)
  if (program === COLLECTOR) written.push(await executable(ingredients, join(folder, name)))
  return written
}

async function archive(ingredients: Ingredients, release: Release, file: string): Promise<string> {
  const work = await workFolder(file)
  const tree = join(work, `${ingredients.program.name}-${release.version}`)
  await writeTree(ingredients, tree)
  await packFolder(tree, join(work, 'archive'), release)
  await moveFile(join(work, 'archive'), file)
  await rm(work, { recursive: true })
  return file
}

async function executable({ program, parts, addons, target }: Ingredients, file: string): Promise<string> {
  const all = new Map(parts)
  for (const [name, addon] of addons) all.set(name, await readFile(addon))
  await writeExecutable(`${program.name}.cjs`, all, target, file)
  return file
}

/** Prints progress on a terminal. A pipe gets only the names of the files. */
function reportProgress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`building ${basename(line)}\n`)
}
