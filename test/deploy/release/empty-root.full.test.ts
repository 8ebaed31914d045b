import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { CaptureSite } from '../../support/capture-site.ts'
import { skipNamespaces as skip } from '../../support/namespace.ts'
import { startCommand } from '../../support/programs.ts'
import { released, scannedMatches, THIS_MACHINE } from '../../support/released.ts'

/** Enters the root directory. The mounts end with the program. */
const ENTER = `root=$1; shift
mount --rbind /dev "$root/dev" && mount -t sysfs sysfs "$root/sys" && mount -t proc proc "$root/proc" &&
exec chroot "$root" "$@"`

t.test('the executable needs no files but those of the C and C++ libraries', { skip, timeout: 120_000 }, async (t) => {
  const site = await CaptureSite.make(t, `spsroot${process.pid}`)
  const root = site.folder('root')
  for (const name of ['dev', 'proc', 'sys']) mkdirSync(join(root, name))
  const executable = released('posture-collector', THIS_MACHINE)
  const libraries = execFileSync('ldd', [executable], { encoding: 'utf8' }).match(/\/lib\S+/g) ?? []
  for (const library of libraries) {
    t.match(library, /\/(?:ld-linux-[\w-]+|lib(?:c|dl|gcc_s|m|pthread|stdc\+\+))\.so\.\d$/)
    mkdirSync(join(root, dirname(library)), { recursive: true })
    copyFileSync(library, join(root, library))
  }
  copyFileSync(executable, join(root, 'posture-collector'))
  const start = (command: string, ...parameters: string[]) =>
    startCommand(
      [
        ...['ip', 'netns', 'exec', site.network, 'unshare', '--mount', '--pid', '--fork', '--kill-child'],
        ...['sh', '-c', ENTER, 'sh', root, '/posture-collector', command, '--outbox', '/outbox', ...parameters],
      ],
      { ...site.settings, SVC_ENDPOINT: '127.0.0.1' },
    )

  const check = await start('check', '--json').ended
  t.equal(check.status, 0, check.stdout)
  t.match(check.stdout, /"check":"interface","result":"ok","found":"far: up, link type ethernet/)
  t.match(await start('check', '--capture-filter', 'no such words').ended, {
    status: 2,
    stdout: /--capture-filter: .*syntax error/,
  })

  const collector = start('run', '--capture-filter', 'not src host 10.9.0.1')
  t.teardown(() => collector.child.kill('SIGKILL'))
  await site.untilHealth('the service', ({ https_connected }) => https_connected)
  // From the addresses 10.9.0.0, 10.9.0.1 and 10.9.0.2.
  site.play(['claude.ai', 'chatgpt.com', 'claude.ai'])
  await site.untilEvents('acknowledged', 2)
  t.same(await scannedMatches('Acme', site.data), { Claude: 2 }, 'the filter dropped the second packet')
})
