import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { mountedNoexec, UNPACK_VARIABLE, unpacked } from '../../../deploy/release/embedded/unpack.ts'
import { skipNamespaces as skip } from '../../support/namespace.ts'

const BYTES = Buffer.from('an addon')

/** Unpacks with only these environment variables. */
function unpackIn(environment: Readonly<Record<string, string>>): string {
  const before = { ...process.env }
  for (const name of [UNPACK_VARIABLE, 'CACHE_DIRECTORY', 'XDG_CACHE_HOME', 'XDG_RUNTIME_DIR']) delete process.env[name]
  Object.assign(process.env, environment)
  try {
    return unpacked('addon.node', BYTES)
  } finally {
    for (const name of Object.keys(environment)) delete process.env[name]
    Object.assign(process.env, before)
  }
}

t.test('the file belongs to the caller only, is executable, and is written once', async (t) => {
  const directory = join(t.testdir(), 'own')
  const file = unpackIn({ [UNPACK_VARIABLE]: directory })
  t.same(readFileSync(file), BYTES)
  t.equal(statSync(directory).mode & 0o777, 0o700)
  t.equal(statSync(file).mode & 0o777, 0o500)
  const { ino } = statSync(file)
  t.equal(unpackIn({ [UNPACK_VARIABLE]: directory }), file)
  t.equal(statSync(file).ino, ino)
})

t.test('a modified file or a link is replaced', async (t) => {
  const directory = join(t.testdir(), 'own')
  const file = unpackIn({ [UNPACK_VARIABLE]: directory })
  chmodSync(file, 0o700)
  writeFileSync(file, 'something else')
  t.equal(unpackIn({ [UNPACK_VARIABLE]: directory }), file)
  t.same(readFileSync(file), BYTES)
  const other = join(t.testdirName, 'other')
  mkdirSync(other, { mode: 0o700 })
  writeFileSync(join(t.testdirName, 'target'), BYTES)
  const name = file.split('/').at(-1) ?? ''
  symlinkSync(join(t.testdirName, 'target'), join(other, name))
  unpackIn({ [UNPACK_VARIABLE]: other })
  t.ok(statSync(join(other, name)).isFile())
  t.not(statSync(join(other, name)).ino, statSync(join(t.testdirName, 'target')).ino)
  t.same(readdirSync(other), [name], 'no other file remains')
})

t.test('unsuitable directories are rejected with a reason', async (t) => {
  const open = join(t.testdir(), 'open')
  mkdirSync(open)
  chmodSync(open, 0o777)
  const file = join(t.testdirName, 'file')
  writeFileSync(file, '')
  const cases: [directory: string, why: RegExp][] = [
    [open, /other users may write to it/],
    [join(open, 'ours'), /other users may write to /],
    [file, /not a directory/],
    ['/proc/own', /not there|no permission/],
    ['/sys/own', /no permission|read-only/],
  ]
  if (process.getuid?.() === 0) {
    const others = join(t.testdirName, 'others')
    mkdirSync(others, { mode: 0o755 })
    chownSync(others, 65534, 65534)
    cases.push([others, /: belongs to another user/])
    // The owner of the parent directory could replace ours at any time.
    cases.push([join(others, 'ours'), /others belongs to another user|: belongs to another user/])
    symlinkSync(others, join(t.testdirName, 'link'))
    cases.push([join(t.testdirName, 'link/ours'), /belongs to another user/])
  }
  for (const [directory, why] of cases) {
    const fails = () => unpackIn({ [UNPACK_VARIABLE]: directory })
    t.throws(fails, { message: why }, directory)
    t.throws(fails, { message: /^no directory for the program's addons: .*set POSTURE_UNPACK_DIR to [^\n]*$/ })
  }
})

t.test('a world-writable directory is accepted if it is sticky, as /tmp is, also through a link', async (t) => {
  const sticky = join(t.testdir(), 'sticky')
  mkdirSync(sticky)
  chmodSync(sticky, 0o1777)
  const file = unpackIn({ [UNPACK_VARIABLE]: join(sticky, 'own') })
  t.equal(file.startsWith(join(sticky, 'own')), true)
  symlinkSync(join(sticky, 'own'), join(t.testdirName, 'link'))
  t.equal(unpackIn({ [UNPACK_VARIABLE]: join(t.testdirName, 'link') }), file)
})

t.test('the first suitable directory is used', async (t) => {
  const open = join(t.testdir(), 'open')
  const uid = process.getuid?.() ?? 0
  mkdirSync(join(open, `posture-${uid}`), { recursive: true })
  chmodSync(join(open, `posture-${uid}`), 0o777)
  const cache = join(t.testdirName, 'cache')
  t.ok(unpackIn({ CACHE_DIRECTORY: cache, XDG_CACHE_HOME: open }).startsWith(`${cache}/posture-`))
  t.ok(unpackIn({ CACHE_DIRECTORY: open, XDG_CACHE_HOME: cache }).startsWith(`${cache}/posture-`))
})

const MOUNTS = [
  '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw',
  '30 22 0:26 / /tmp rw,nosuid,nodev,noexec shared:9 - tmpfs tmpfs rw',
  '31 30 0:27 / /tmp/builds rw,relatime - tmpfs tmpfs rw',
  '32 22 0:28 / /mnt/with\\040space rw,noexec - tmpfs tmpfs rw',
  '33 22 0:29 / /over rw - tmpfs tmpfs rw',
  '34 33 0:30 / /over rw,noexec - tmpfs tmpfs rw',
  '',
].join('\n')

for (const [path, noexec] of [
  ['/', false],
  ['/var/cache/x', false],
  ['/tmp', true],
  ['/tmp/x', true],
  ['/tmpx', false],
  ['/tmp/builds/x', false],
  ['/mnt/with space/x', true],
  ['/over/x', true],
] as const) {
  t.equal(mountedNoexec(path, MOUNTS), noexec, `${path}: ${noexec ? 'noexec' : 'may execute'}`)
}
t.equal(mountedNoexec('/x', ''), false, 'a system without a list')

t.test('what root has unpacked serves a user who can execute nothing else', { skip }, async (t) => {
  const unpack = new URL('../../../deploy/release/embedded/unpack.js', import.meta.url).href
  const program = `import { unpacked } from '${unpack}'
    try { console.log(unpacked('addon.node', Buffer.from('an addon'))) } catch (error) { console.log(error.message) }`
  const node = `${process.execPath} --input-type=module --eval "$PROGRAM"`
  const alone = 'env -i "PROGRAM=$PROGRAM" HOME=/nonexistent'
  const asUser = `setpriv --reuid 1234 --regid 1234 --clear-groups ${alone} ${node}`
  const mounts = 'mount -t tmpfs -o mode=755 none /var/cache && mount -t tmpfs -o noexec,mode=1777 none /tmp'
  const script = `${mounts} && cd / && ${asUser} && ${alone} ${node} && ${asUser}`
  const words = ['--mount', '--propagation', 'private', 'sh', '-c', script]
  const printed = execFileSync('unshare', words, { encoding: 'utf8', env: { ...process.env, PROGRAM: program } })
  const [before, byRoot, after] = printed.trim().split('\n')
  t.match(before, /^no directory for the program's addons: .*\/tmp\/posture-1234: mounted noexec/)
  t.match(byRoot, /^\/var\/cache\/posture-0\/[0-9a-f]{16}-addon\.node$/)
  t.equal(after, byRoot)
})
