import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

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
}

function packageHint(command: string): string {
  const name = PACKAGES[command]
  return name === undefined ? '' : `: "apt-get install ${name}" brings it`
}
