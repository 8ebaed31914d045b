import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadCatalog } from '../../registry/catalog.ts'
import { NameMatcher } from '../../registry/match.ts'
import { admin, REPOSITORY } from './programs.ts'

/**
 * The output of `npm run release`. `npm run test:full` runs it before the files that import this.
 */
const RELEASE = join(REPOSITORY, 'release')
export const { version: VERSION } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
  version: string
}

export type Machine = 'x86_64' | 'arm64'
/** The machine that the tests run on. */
export const THIS_MACHINE: Machine = process.arch === 'x64' ? 'x86_64' : 'arm64'
/**
 * Command prefix that runs a program of the other architecture: QEMU in user mode, with the cross
 * compiler's C library.
 */
export const EMULATED: Readonly<Record<Machine, readonly string[]>> = {
  x86_64: [],
  arm64: ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu'],
}

/**
 * Path of a released file.
 *
 * @throws Error when the file was not built.
 */
export function released(program: string, machine: Machine, suffix = ''): string {
  const file = join(RELEASE, `${program}-${VERSION}-linux-${machine}${suffix}`)
  if (!existsSync(file)) throw new Error(`${file} does not exist: run npm run release`)
  return file
}

/**
 * Path of a released Debian package.
 *
 * @throws Error when the package was not built.
 */
export function debianPackage(program: string, machine: Machine): string {
  const file = join(RELEASE, `${program}_${VERSION}_${machine === 'x86_64' ? 'amd64' : 'arm64'}.deb`)
  if (!existsSync(file)) throw new Error(`${file} does not exist: run npm run release`)
  return file
}

/** Unpacks a released archive. Returns the folder with bin/ and lib/. */
export function unpackedTree(t: { testdir(): string }, program: string, machine: Machine): string {
  const folder = join(t.testdir(), `${program}-${machine}`)
  mkdirSync(folder)
  execFileSync('tar', ['-xzf', released(program, machine, '.tar.gz'), '-C', folder, '--strip-components=1'])
  return folder
}

const DEMO = join(REPOSITORY, 'test/captures/demo')
export const DEMO_CAPTURE = join(DEMO, 'input.pcap')

/**
 * Expected number of matches per platform in the demo capture, from its builder's list of names.
 */
export function demoMatches(): Record<string, number> {
  const { names } = JSON.parse(readFileSync(join(DEMO, 'expect.json'), 'utf8')) as { names: { name: string }[] }
  const matcher = new NameMatcher(loadCatalog())
  const found: Record<string, number> = {}
  for (const { name } of names) {
    const platform = matcher.match(name)?.platform.name
    if (platform !== undefined) found[platform] = (found[platform] ?? 0) + 1
  }
  return found
}

/** Scans an organization and returns the number of matches per platform. */
export async function scannedMatches(organization: string, dataDirectory: string): Promise<Record<string, unknown>> {
  const data = ['--org', organization, '--data-dir', dataDirectory]
  await admin('scan', 'run', ...data)
  const rows = await admin('scan', 'show', ...data)
  return Object.fromEntries(
    rows.flatMap(({ platform_name, metadata }) => {
      const { matches } = metadata as { readonly matches: number }
      return typeof platform_name === 'string' ? [[platform_name, matches]] : []
    }),
  )
}
