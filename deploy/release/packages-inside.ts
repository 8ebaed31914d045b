import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { REPOSITORY } from './bundle.ts'
import { LIBPCAP_VERSION, libpcapSource } from './libpcap.ts'
import { npmFolder } from './npm-file.ts'
import type { AddonName, Program } from './programs.ts'
import { NODE_VERSION, type Target } from './targets.ts'

/** A package that is included in a release. */
export interface PackageInside {
  /** The type of its package URL: `generic` outside of npm. */
  readonly type: 'npm' | 'generic'
  readonly name: string
  readonly version: string
  /** Usually an SPDX expression. */
  readonly license: string
  /** Its complete licenses and notices. */
  readonly texts: readonly string[]
}

/** The packages from which each addon is compiled or taken. */
const OF_ADDON: Readonly<Record<AddonName, readonly string[]>> = {
  'pcap.node': ['pcap', 'nan'],
  'lmdb.node': ['lmdb', 'node-addon-api'],
  'argon2.node': ['@node-rs/argon2'],
}

const LICENSE_FILE = /^(licen[cs]e|copying|notice)/i

/** The packages in a program for a target, by name. `inputs`: the files in its bundle. */
export async function packagesInside(
  program: Program,
  inputs: ReadonlySet<string>,
  target: Target,
): Promise<readonly PackageInside[]> {
  const folders = new Set(program.addons.flatMap((addon) => OF_ADDON[addon].map((name) => `node_modules/${name}`)))
  for (const file of inputs) {
    const folder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]
    if (folder !== undefined) folders.add(folder)
  }
  const packages = await Promise.all([...folders].map((folder) => packageIn(join(REPOSITORY, folder))))
  packages.push({
    ...{ type: 'generic', name: 'node', version: NODE_VERSION, license: 'MIT' },
    texts: await licensesIn(await npmFolder(target.node)),
  })
  if (program.addons.includes('pcap.node')) {
    packages.push({
      ...{ type: 'generic', name: 'libpcap', version: LIBPCAP_VERSION, license: 'BSD-3-Clause' },
      texts: await licensesIn((await libpcapSource()).folder),
    })
  }
  return packages.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.version < b.version ? -1 : 1))
}

async function packageIn(folder: string): Promise<PackageInside> {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    name: string
    version: string
    license?: string | { type: string }
  }
  const named = typeof license === 'object' ? license.type : license
  const texts = await licensesIn(folder)
  // Libraries included in a package: lmdb itself has the OpenLDAP license, lz4 the BSD license.
  if (name === 'lmdb') texts.push(...(await licensesIn(join(folder, 'dependencies/lz4'))))
  if (name === 'lmdb') texts.push(...(await licensesIn(join(folder, 'dependencies/lmdb/libraries/liblmdb'))))
  return { type: 'npm', name, version, license: named ?? 'NOASSERTION', texts }
}

async function licensesIn(folder: string): Promise<string[]> {
  if (!existsSync(folder)) return []
  const names = (await readdir(folder)).filter((name) => LICENSE_FILE.test(name)).sort()
  return Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
}

/** One file with the licenses of all included packages. */
export function licensesText(packages: readonly PackageInside[]): string {
  const rule = '='.repeat(100)
  return packages
    .map(({ name, version, license, texts }) => {
      const text = texts.length === 0 ? `(no license file; its package.json says ${license})` : texts.join('\n\n')
      return `${rule}\n${name} ${version}: ${license}\n${rule}\n\n${text.trim()}\n`
    })
    .join('\n')
}
