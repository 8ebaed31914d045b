import { chmod, copyFile, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { REPOSITORY } from './bundle.ts'
import { run } from './commands.ts'
import { moveFile, workFolder } from './files.ts'
import { npmFolder } from './npm-file.ts'
import { TARGETS, type Target } from './targets.ts'

/*
 * A single executable application (Node's documentation, "Single executable applications"): Node
 * itself, with the program in an ELF note.
 */

const POSTJECT = join(REPOSITORY, 'node_modules/postject/dist/cli.js')
const NOTE = 'NODE_SEA_BLOB'
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

/** Node for a target, without debug symbols, which are an eighth of its size. */
export async function strippedNode(target: Target, file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  await copyFile(join(await npmFolder(target.node), 'bin/node'), file)
  await chmod(file, 0o755)
  await run(`${target.tools}strip`, ['--strip-all', file])
}

/** Writes one file with the command and all its parts. */
export async function writeExecutable(
  command: string,
  parts: ReadonlyMap<string, Buffer>,
  target: Target,
  file: string,
): Promise<void> {
  const folder = await workFolder(file)
  const made = join(folder, 'executable')
  for (const [name, bytes] of parts) await writeFile(join(folder, name), bytes)
  const assets = Object.fromEntries([...parts.keys()].filter((name) => name !== command).map((name) => [name, name]))
  const config = {
    // Relative, because the note contains the path.
    main: command,
    output: 'note',
    disableExperimentalSEAWarning: true,
    // Neither is reproducible or can be built for another machine.
    useSnapshot: false,
    useCodeCache: false,
    assets,
  }
  await writeFile(join(folder, 'sea.json'), JSON.stringify(config))
  await run(await builderNode(), ['--experimental-sea-config', 'sea.json'], { cwd: folder })
  await strippedNode(target, made)
  await run(process.execPath, [POSTJECT, made, NOTE, join(folder, 'note'), '--sentinel-fuse', FUSE])
  await moveFile(made, file)
  await rm(folder, { recursive: true })
}

/**
 * The same Node release for the build machine, since the format of the note depends on the release.
 */
async function builderNode(): Promise<string> {
  const own = TARGETS.find(({ nodeArch }) => nodeArch === process.arch)
  if (own === undefined) throw new Error(`releases are built on x64 or arm64, this is ${process.arch}`)
  return join(await npmFolder(own.node), 'bin/node')
}
