import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from './commands.ts'
import { CACHE, emptyFolder } from './npm-file.ts'

/*
 * The source of libpcap, which is linked into the addon of pcap. A Linux distribution's own libpcap
 * needs libraries of its optional capture sources, such as D-Bus.
 */

export const LIBPCAP_VERSION = '1.10.5'
const SHA256 = '84fa89ac6d303028c1c5b754abff77224f45eca0a94eb1a34ff0aa9ceece3925'
/** The suite of Debian that has this version. Mirrors keep its files as long as the suite. */
const SUITE = 'trixie'
const MIRROR = 'http://deb.debian.org/debian'

/** What a live capture needs, with filters and capture files. */
const SOURCES = [
  ...['bpf_filter', 'etherent', 'fad-getad', 'fmtutils', 'gencode', 'grammar', 'nametoaddr'],
  ...['optimize', 'pcap', 'pcap-common', 'pcap-linux', 'pcap-util', 'savefile', 'scanner', 'sf-pcap', 'sf-pcapng'],
  ...['missing/strlcat', 'missing/strlcpy'],
]

export interface LibpcapSource {
  /** Contains libpcap's headers and its license. */
  readonly folder: string
  /** C files, as paths. */
  readonly files: readonly string[]
}

/**
 * Downloads and extracts the source, once.
 *
 * @throws Error if its hash is not the recorded one
 */
export async function libpcapSource(): Promise<LibpcapSource> {
  const folder = join(CACHE, `libpcap-${LIBPCAP_VERSION}-${SHA256.slice(0, 8)}`)
  if (!existsSync(folder)) await extractSource(folder)
  return { folder, files: SOURCES.map((name) => join(folder, `${name}.c`)) }
}

async function extractSource(folder: string): Promise<void> {
  const download = await emptyFolder(`${folder}.download`)
  const archive = await downloadArchive(download)
  const found = createHash('sha256')
    .update(await readFile(archive))
    .digest('hex')
  if (found !== SHA256) throw new Error(`libpcap ${LIBPCAP_VERSION} has the hash ${found}, expected ${SHA256}`)
  const part = await emptyFolder(`${folder}.part`)
  await run('tar', ['-xJf', archive, '-C', part, '--strip-components=1', '--no-same-owner'])
  await generateParser(part)
  await rename(part, folder)
  await rm(download, { recursive: true })
}

/** With a configuration of its own, so that apt's of this machine remains as it is. */
async function downloadArchive(folder: string): Promise<string> {
  for (const needed of ['lists/partial', 'cache/archives/partial', 'source']) await emptyFolder(join(folder, needed))
  const list = join(folder, 'sources.list')
  // The recorded hash takes the place of the signature, whose key not every distribution has.
  await writeFile(list, `deb-src [trusted=yes] ${MIRROR} ${SUITE} main\n`)
  const options = [
    ...['-qq', '-o', `Dir::Etc::SourceList=${list}`, '-o', 'Dir::Etc::SourceParts=-'],
    ...['-o', `Dir::State::Lists=${join(folder, 'lists')}`, '-o', `Dir::Cache=${join(folder, 'cache')}`],
  ]
  await run('apt-get', ['update', ...options])
  const source = join(folder, 'source')
  await run('apt-get', ['source', '--download-only', '--tar-only', ...options, 'libpcap'], { cwd: source })
  const [archive = ''] = await readdir(source)
  return join(source, archive)
}

/** As libpcap's configure and Makefile. `--noline` and `--no-lines` leave out paths. */
async function generateParser(folder: string): Promise<void> {
  const grammar = await readFile(join(folder, 'grammar.y.in'), 'utf8')
  await writeFile(join(folder, 'grammar.y'), grammar.replace('@REENTRANT_PARSER@', '%define api.pure'))
  await run('bison', ['--no-lines', '-p', 'pcap_', '-o', 'grammar.c', '-d', 'grammar.y'], { cwd: folder })
  const scanner = ['--noline', '--nounput', '-P', 'pcap_', '--header-file=scanner.h', '-o', 'scanner.c', 'scanner.l']
  await run('flex', scanner, { cwd: folder })
}
