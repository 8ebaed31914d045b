import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { Fault } from '../../engine/kernel/process/error-codes.ts'

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024

/** Runs a build tool and returns its output. Throws an Error with its standard error. */
export async function run(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(command, args, { ...options, maxBuffer: OUTPUT_BYTES_MAX })
    return stdout
  } catch (error) {
    const { code, stderr } = error as NodeJS.ErrnoException & { stderr?: string }
    if (code === 'ENOENT') throw new Error(`${command} is not installed${packageHint(command)}`, { cause: error })
    throw new Error(`${command}: ${stderr?.trim() || (error as Error).message}`, { cause: error })
  }
}

const PACKAGES: Readonly<Record<string, string>> = {
  'aarch64-linux-gnu-g++': 'g++-aarch64-linux-gnu',
  'aarch64-linux-gnu-gcc': 'g++-aarch64-linux-gnu',
  'aarch64-linux-gnu-strip': 'g++-aarch64-linux-gnu',
  'x86_64-linux-gnu-g++': 'g++-x86-64-linux-gnu',
  'x86_64-linux-gnu-gcc': 'g++-x86-64-linux-gnu',
  'x86_64-linux-gnu-strip': 'g++-x86-64-linux-gnu',
  'g++': 'g++',
  gcc: 'g++',
  strip: 'binutils',
  readelf: 'binutils',
  'dpkg-deb': 'dpkg',
  'apt-get': 'apt',
  bison: 'bison',
  flex: 'flex',
  xz: 'xz-utils',
}

function packageHint(command: string): string {
  const name = PACKAGES[command]
  return name === undefined ? '' : `: "apt-get install ${name}" brings it`
}

/** @throws Fault USAGE that names the packages of the missing tools, before anything is built. */
export function assertTools(toolPrefixes: readonly string[]): void {
  const tools = toolPrefixes.flatMap((prefix) => ['g++', 'gcc', 'strip'].map((tool) => prefix + tool))
  const missing = ['readelf', 'dpkg-deb', 'apt-get', 'bison', 'flex', 'xz', ...tools].filter((tool) => !isOnPath(tool))
  const packages = new Set(missing.map((tool) => PACKAGES[tool] ?? tool))
  if (packages.size === 0) return
  throw new Fault('USAGE', `the build needs more packages. Run: apt-get install ${[...packages].join(' ')}`)
}

function isOnPath(command: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, command)))
}
