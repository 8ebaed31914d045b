import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadCatalog } from '../../registry/catalog.ts'
import { NameMatcher } from '../../registry/match.ts'
import { admin, REPOSITORY } from './programs.ts'

/** What `npm run release` built: the set-up of `npm run test:full` has called it. */
const RELEASE = join(REPOSITORY, 'release')
export const { version: VERSION } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
  version: string
}

export type Machine = 'x86_64' | 'arm64'
/** The one that the tests run on. */
export const THIS_MACHINE: Machine = process.arch === 'x64' ? 'x86_64' : 'arm64'
/** Words that run a command of the other one: QEMU in user mode, with the cross compiler's C library. */
export const EMULATED: Readonly<Record<Machine, readonly string[]>> = {
  x86_64: [],
  arm64: ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu'],
}

/** A file of the release. Throws where it was not built. */
export function released(program: string, machine: Machine, suffix = ''): string {
  const file = join(RELEASE, `${program}-${VERSION}-linux-${machine}${suffix}`)
  if (!existsSync(file)) throw new Error(`${file} is not there: npm run release`)
  return file
}

/** A Debian package of the release. Throws where it was not built. */
export function debianPackage(program: string, machine: Machine): string {
  const file = join(RELEASE, `${program}_${VERSION}_${machine === 'x86_64' ? 'amd64' : 'arm64'}.deb`)
  if (!existsSync(file)) throw new Error(`${file} is not there: npm run release`)
  return file
}

/** Unpacks an archive of the release; answers the folder that has bin/ and lib/. */
export function unpackedTree(t: { testdir(): string }, program: string, machine: Machine): string {
  const folder = join(t.testdir(), `${program}-${machine}`)
  mkdirSync(folder)
  execFileSync('tar', ['-xzf', released(program, machine, '.tar.gz'), '-C', folder, '--strip-components=1'])
  return folder
}

const DEMO = join(REPOSITORY, 'test/captures/demo')
export const DEMO_CAPTURE = join(DEMO, 'input.pcap')

/** For each platform how often it must be matched in the demo capture, from what its builder put in. */
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

/** Scans an organization, and gives for each platform how often it was matched. */
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
