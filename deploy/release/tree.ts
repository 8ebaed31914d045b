import { chmod, copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { REPOSITORY } from './bundle.ts'
import { PARTS } from './embedded/parts.ts'
import { strippedNode } from './executable.ts'
import { emptyFolder } from './npm-file.ts'
import type { Program } from './programs.ts'
import type { Target } from './targets.ts'

/*
 * A program as installed files, for archives, Debian packages and container images. The layout
 * below /usr:
 *
 *   bin/COMMAND                    a two-line script that starts Node
 *   lib/PROGRAM/node               Node
 *   lib/PROGRAM/COMMAND.cjs, ...   the parts (embedded/parts.ts)
 *   lib/systemd/system/...         the systemd unit, for a tree at /usr
 *   share/doc/PROGRAM/...          licenses, SBOM, documentation, sample settings, examples
 *   share/man/...                  manual pages; completion scripts (shell-files.ts)
 */

/** The contents of a program for one target. */
export interface Ingredients {
  readonly program: Program
  readonly target: Target
  /** Code, files and addons by part name. */
  readonly parts: ReadonlyMap<string, Buffer>
  readonly addons: ReadonlyMap<string, string>
  /** Documentation files by name. */
  readonly documents: ReadonlyMap<string, string>
  /** Manual pages and completion scripts by path. */
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
  await mkdir(join(doc, 'examples'))
  for (const file of program.examples)
    await copyPlain(file, join(doc, 'examples'), file.endsWith('.sh') ? 0o755 : 0o644)
  for (const page of await readdir(join(REPOSITORY, 'docs'), { recursive: true })) {
    if (!page.endsWith('.md')) continue
    const target = join(doc, 'docs', dirname(page))
    await mkdir(target, { recursive: true })
    const text = await readFile(join(REPOSITORY, 'docs', page), 'utf8')
    await writeMode(join(target, basename(page)), installedPage(text), 0o644)
  }
}

/** A page of the documentation, whose links to files of deploy/ lead to the examples. */
export function installedPage(text: string): string {
  return text.replace(/\]\((\.\.\/(?:\.\.\/)?)deploy\/[^)]*?([^)/]+)\)/g, ']($1examples/$2)')
}

/** Works wherever the tree is, and through symbolic links. */
function starter(program: Program, command: string): string {
  const preloads = command === 'posture-admin' ? program.preloads : []
  const flags = [...program.nodeFlags, ...preloads.flatMap((file) => ['--require', `"$lib/${PARTS[file]}"`])]
  return [
    '#!/bin/sh',
    `lib=$(dirname "$(dirname "$(readlink -f "$0")")")/lib/${program.name}`,
    ['exec', '"$lib/node"', ...flags, `"$lib/${command}.cjs"`, '"$@"'].join(' '),
    '',
  ].join('\n')
}

/** Copies a file of the repository into a directory. */
async function copyPlain(file: string, folder: string, mode = 0o644): Promise<void> {
  await writeMode(join(folder, basename(file)), await readFile(join(REPOSITORY, file)), mode)
}

/** Sets the mode regardless of the umask. */
export async function writeMode(file: string, bytes: string | Uint8Array, mode: number): Promise<void> {
  await writeFile(file, bytes)
  await chmod(file, mode)
}
