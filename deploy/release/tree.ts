import { chmod, copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { REPOSITORY } from './bundle.ts'
import { strippedNode } from './executable.ts'
import { emptyFolder } from './npm-file.ts'
import type { Program } from './programs.ts'
import type { Target } from './targets.ts'

/*
 * A program as files that need no unpacking: what archives, Debian packages and container images hold. It lies as below /usr:
 *
 *   bin/COMMAND                    a script of two lines that starts Node
 *   lib/PROGRAM/node               Node
 *   lib/PROGRAM/COMMAND.cjs, ...   the parts (embedded/parts.ts)
 *   lib/systemd/system/...         the unit of systemd, for a tree at /usr
 *   share/doc/PROGRAM/...          licences, SBOM, the documentation, an example of the settings
 *   share/man/...                  manual pages; completion scripts are beside them (shell-files.ts)
 */

/** What a program is made of on one machine. */
export interface Ingredients {
  readonly program: Program
  readonly target: Target
  /** Texts and addons by the names of the parts. */
  readonly parts: ReadonlyMap<string, Buffer>
  readonly addons: ReadonlyMap<string, string>
  /** Names and texts of what belongs to its documentation. */
  readonly documents: ReadonlyMap<string, string>
  /** Manual pages and completion scripts by their paths. */
  readonly shell: ReadonlyMap<string, string | Buffer>
}

export async function writeTree(
  { program, target, parts, addons, documents, shell }: Ingredients,
  folder: string,
): Promise<void> {
  await emptyFolder(folder)
  const lib = join(folder, 'lib', program.name)
  const bin = join(folder, 'bin')
  const doc = join(folder, 'share/doc', program.name)
  const units = join(folder, 'lib/systemd/system')
  for (const each of [lib, bin, units, doc]) await mkdir(each, { recursive: true })
  await strippedNode(target, join(lib, 'node'))
  for (const [name, bytes] of parts) await writeMode(join(lib, name), bytes, 0o644)
  for (const [name, file] of addons) {
    await copyFile(file, join(lib, name))
    await chmod(join(lib, name), 0o644)
  }
  for (const { name } of program.commands) await writeMode(join(bin, name), starter(program, name), 0o755)
  for (const [name, text] of documents) await writeMode(join(doc, name), text, 0o644)
  for (const [path, bytes] of shell) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeMode(join(folder, path), bytes, 0o644)
  }
  await copyPlain(program.unit, units)
  await copyPlain(program.settings, doc)
  await copyPlain('CHANGELOG.md', doc)
  for (const page of await readdir(join(REPOSITORY, 'docs'), { recursive: true })) {
    if (!page.endsWith('.md')) continue
    const target = join(doc, 'docs', dirname(page))
    await mkdir(target, { recursive: true })
    await copyPlain(join('docs', page), target)
  }
}

/** Wherever the tree lies, and by whatever link it is called. */
function starter(program: Program, command: string): string {
  return [
    '#!/bin/sh',
    `lib=$(dirname "$(dirname "$(readlink -f "$0")")")/lib/${program.name}`,
    ['exec', '"$lib/node"', ...program.nodeFlags, `"$lib/${command}.cjs"`, '"$@"'].join(' '),
    '',
  ].join('\n')
}

/** Copies a file of the repository into a folder. */
async function copyPlain(file: string, folder: string): Promise<void> {
  await writeMode(join(folder, basename(file)), await readFile(join(REPOSITORY, file)), 0o644)
}

/** With the same modes whatever the umask. */
export async function writeMode(file: string, bytes: string | Uint8Array, mode: number): Promise<void> {
  await writeFile(file, bytes)
  await chmod(file, mode)
}
