import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { REPOSITORY } from './bundle.ts'
import { run } from './commands.ts'
import { moveFile, type Release, workFolder } from './files.ts'
import type { Program } from './programs.ts'
import { GLIBC_MAX, type Target } from './targets.ts'
import { type Ingredients, writeMode, writeTree } from './tree.ts'

/*
 * Debian packages: the tree below /usr, the systemd unit, its settings file, and a system user (the
 * scripts that dpkg runs are in deploy/debian). Debian Policy, chapters 5 (control files), 6
 * (scripts), 10.7 (configuration files).
 */

const MAINTAINER = 'Security Posture Service maintainers <maintainers@posture.invalid>'
const SCRIPTS = ['preinst', 'postinst', 'prerm', 'postrm'] as const

/** In Debian's form: PACKAGE_VERSION_ARCHITECTURE.deb */
export function packageFile(program: Program, target: Target, { version }: Release): string {
  return `${program.name}_${version}_${target.debian}.deb`
}

/** Builds the Debian package of a program for one target. */
export async function writePackage(ingredients: Ingredients, release: Release, file: string): Promise<void> {
  const { program, target } = ingredients
  const work = await workFolder(file)
  const root = join(work, 'root')
  await writeTree(ingredients, join(root, 'usr'))
  await writeMode(join(root, 'usr/share/doc', program.name, 'copyright'), copyright(program), 0o644)
  await writeMode(join(root, 'usr/share/doc', program.name, 'changelog.gz'), changelog(program, release), 0o644)
  const settings = settingsPath(program)
  await mkdir(dirname(join(root, settings)), { recursive: true })
  await writeMode(join(root, settings), await readFile(join(REPOSITORY, program.settings)), 0o640)

  const meta = join(root, 'DEBIAN')
  const { list, kibibytes } = await contents(root)
  await mkdir(meta)
  await writeMode(join(meta, 'control'), control(program, target, release, kibibytes), 0o644)
  await writeMode(join(meta, 'conffiles'), `${settings}\n`, 0o644)
  await writeMode(join(meta, 'md5sums'), list, 0o644)
  for (const name of SCRIPTS) await writeMode(join(meta, name), await script(name, program), 0o755)

  // gzip: supported by Debian 10 and 11, and ten times as fast as xz. Files newer than the commit
  // get its time (SOURCE_DATE_EPOCH).
  await run('dpkg-deb', ['--root-owner-group', '-Zgzip', '--build', root, join(work, 'package')], {
    env: { ...process.env, SOURCE_DATE_EPOCH: `${release.epochSeconds}` },
  })
  await moveFile(join(work, 'package'), file)
  await rm(work, { recursive: true })
}

function settingsPath({ name, settings }: Program): string {
  return `/etc/${name}/${basename(settings)}`
}

function control(program: Program, { debian }: Target, { version }: Release, kibibytes: number): string {
  return [
    `Package: ${program.name}`,
    `Version: ${version}`,
    `Architecture: ${debian}`,
    `Maintainer: ${MAINTAINER}`,
    'Section: net',
    'Priority: optional',
    `Installed-Size: ${kibibytes}`,
    `Depends: libc6 (>= ${GLIBC_MAX}), libstdc++6 (>= 8), libgcc-s1 | libgcc1, adduser, init-system-helpers (>= 1.51)`,
    `Description: ${program.title}`,
    ...descriptionLines(program.about),
    '',
  ].join('\n')
}

/** Continuation lines of a description: a blank, then text of at most 80 columns. */
function descriptionLines(text: string): string[] {
  return text.match(/.{1,78}(?:\s|$)/g)?.map((line) => ` ${line.trimEnd()}`) ?? []
}

/** https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/ */
function copyright(program: Program): string {
  return [
    'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/',
    'Upstream-Name: Security Posture Service',
    '',
    'Files: *',
    'Copyright: the authors of the Security Posture Service',
    'License: Apache-2.0',
    ' On Debian systems the text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.',
    'Comment:',
    ` ${program.name} holds Node.js and packages of others, each under its own license:`,
    ` /usr/share/doc/${program.name}/THIRD-PARTY-LICENSES.txt has them all, sbom.cdx.json lists them.`,
    '',
  ].join('\n')
}

/** Debian Policy §4.4. gzip writes neither name nor time. */
function changelog({ name }: Program, { version, epochSeconds }: Release): Buffer {
  const date = new Date(epochSeconds * 1000).toUTCString().replace('GMT', '+0000')
  const text = `${name} (${version}) stable; urgency=medium\n\n  * See CHANGELOG.md beside this file.\n\n -- ${MAINTAINER}  ${date}\n`
  return gzipSync(text, { level: 9 })
}

async function script(name: (typeof SCRIPTS)[number], program: Program): Promise<string> {
  const text = await readFile(join(REPOSITORY, `deploy/debian/${name}.sh`), 'utf8')
  return text
    .replaceAll('@PROGRAM@', program.name)
    .replaceAll('@SETTINGS@', settingsPath(program))
    .replaceAll('@SECRET_FILE@', program.secretFile)
    .replaceAll('@SECRET_SETTING@', program.secretSetting)
}

/** The output of `md5sum`, for debsums, and the installed size. */
async function contents(root: string): Promise<{ list: string; kibibytes: number }> {
  const lines: string[] = []
  let kibibytes = 0
  const names = (await readdir(root, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
  for (const name of names.toSorted()) {
    const file = join(root, name)
    kibibytes += Math.ceil((await stat(file)).size / 1024)
    // dpkg tracks configuration files itself.
    if (name.startsWith('usr/')) {
      lines.push(
        `${createHash('md5')
          .update(await readFile(file))
          .digest('hex')}  ${name}\n`,
      )
    }
  }
  return { list: lines.join(''), kibibytes }
}
