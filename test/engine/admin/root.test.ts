import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { FilesOfRoot, giveTo, SERVICE_USER, TRAPS } from '../../support/hostile-store.ts'
import { skipUnlessRoot } from '../../support/other-user.ts'
import { run, start } from '../../support/programs.ts'
import { rootSite } from '../../support/root-site.ts'

/*
 * posture-admin as root, on a data directory of the service's user. What the user has put there
 * must not lead root to other files. All commands and files: root.full.test.ts
 */
t.test('root follows no link of the service', { skip: skipUnlessRoot }, async (t) => {
  const { directory, data } = await rootSite(t)
  const root = new FilesOfRoot(join(directory, 'victims'))
  for (const [index, { name, set }] of TRAPS.entries()) {
    const copy = join(directory, `trap-${index}`)
    cpSync(data, copy, { recursive: true, filter: (from) => !from.endsWith('.sock') })
    giveTo(SERVICE_USER, copy)
    set(join(copy, 'store'), root)
    const { signal, stderr } = await run('admin', ['organization', 'list', '--data-dir', copy])
    t.equal(signal, null, stderr)
    t.notMatch(stderr, /INTERNAL/)
    t.equal(root.damage, '', name)
  }
})

t.test('a link of the service in a directory of root decides, too', { skip: skipUnlessRoot }, async (t) => {
  const { directory, data } = await rootSite(t)
  const root = new FilesOfRoot(join(directory, 'victims'))
  const link = join(directory, 'link')
  symlinkSync(root.directory, link)
  lchownSync(link, SERVICE_USER.uid, SERVICE_USER.gid)
  t.match(await run('admin', ['setup', '--org', 'A', '--domain', 'a.example', '--no-wait', '--data-dir', link]), {
    status: 4,
    stderr: /STORE_UNWRITABLE --data-dir .*no permission to write/,
  })
  t.equal(root.damage, '')
  const ofRoot = join(directory, 'of-root-link')
  symlinkSync('data', ofRoot)
  t.match(await run('admin', ['organization', 'list', '--data-dir', ofRoot]), { status: 0, stdout: /Acme/ }, data)
})

t.test('a directory in which others can replace what root uses is refused', { skip: skipUnlessRoot }, async (t) => {
  const { directory } = await rootSite(t)
  const open = join(directory, 'open')
  mkdirSync(join(open, 'data/store'), { recursive: true })
  const list = ['organization', 'list', '--data-dir', join(open, 'data')]
  chmodSync(open, 0o775)
  t.match(await run('admin', list), {
    status: 4,
    stderr: /other users can replace what root uses in \S+open; run this as the user of/,
  })
  chmodSync(open, 0o1777)
  t.match(await run('admin', list), { stderr: /NOT_FOUND/ }, 'with the sticky bit, names of root stay')
  const shared = ['--data-dir', join(open, 'new')]
  t.match(await run('admin', ['organization', 'list', ...shared]), { status: 4, stderr: /new does not exist; create/ })
  t.match(await run('admin', ['organization', 'create', 'A', '--domain', 'a.example', ...shared]), { status: 0 })
})

t.test('where root cannot become the user, it refuses', { skip: skipUnlessRoot }, async (t) => {
  const { at } = await rootSite(t)
  const { ended } = start('admin', ['organization', 'list', ...at], {}, ['setpriv', '--bounding-set=-setuid'])
  t.match(await ended, {
    status: 4,
    stderr: /belongs to uid 1234, whose files root must not use; run this as that user/,
  })
})

/** A process of the service's user that replaces what a command creates by a link. */
async function racer(t: Test, directory: string, target: string): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL('../../support/hostile-racer.js', import.meta.url)), [directory, target], {
    ...SERVICE_USER,
    execArgv: [],
  })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

t.test('a racing process of the service cannot lead root to other files', { skip: skipUnlessRoot }, async (t) => {
  const { directory, data, at, ofRoot } = await rootSite(t)
  const root = new FilesOfRoot(join(directory, 'victims'))
  const backup = join(ofRoot, 'a.backup')
  t.match(await run('admin', ['backup', backup, ...at]), { status: 0 })
  const secret = join(ofRoot, 'url')
  writeFileSync(secret, 'https://hooks.example/secret', { mode: 0o600 })
  const rows = [
    { words: ['restore', backup, '--force'], target: root.directory },
    { words: ['backup', join(ofRoot, 'b.backup')], target: root.directory },
    {
      words: ['alert', 'channel', 'add', 'soc', '--kind', 'webhook', '--url-file', secret, '--org', 'Acme'],
      target: root.secret,
    },
  ]
  for (const { words, target } of rows) {
    const child = await racer(t, data, target)
    for (let round = 0; round < 3; round++) await run('admin', [...words, ...at])
    child.kill('SIGKILL')
    await once(child, 'exit')
    t.equal(root.damage, '', words.join(' '))
  }
})

t.test('what root creates on a data directory belongs to its user', { skip: skipUnlessRoot }, async (t) => {
  const { directory, data, at, ofRoot } = await rootSite(t)
  const backup = join(ofRoot, 'a.backup')
  t.match(await run('admin', ['backup', backup, ...at]), { status: 0 })
  t.match(statSync(backup), { uid: 0, mode: 0o100600 })
  const empty = join(directory, 'empty')
  mkdirSync(empty)
  chownSync(empty, SERVICE_USER.uid, SERVICE_USER.gid)
  t.match(await run('admin', ['restore', backup, '--data-dir', empty]), { status: 0 })
  for (const place of [data, empty]) {
    for (const name of readdirSync(place, { recursive: true, encoding: 'utf8' })) {
      t.match(statSync(join(place, name)), SERVICE_USER, name)
    }
  }
  t.match(await run('admin', ['backup', backup, ...at]), { status: 5, stderr: /CONFLICT/ })
  const none = ['--org', 'none', ...at]
  // Any user can create this in /tmp. Such a process does not exist: pids end at 2^22 (proc(5)).
  const left = 'csv.4194304.aaaaaaaa.part'
  mkdirSync(join(ofRoot, left))
  for (const words of [
    ['export', 'platforms', '--format', 'csv', '--out', join(ofRoot, 'csv'), '--cursor', join(ofRoot, 'cursor')],
    ['organization', 'remove', 'Acme', '--confirm', 'acme', '--audit-file', join(ofRoot, 'audit')],
  ]) {
    t.match(await run('admin', [...words, ...(words[0] === 'export' ? none : at)]), { stderr: /NOT_FOUND|USAGE/ })
  }
  t.same(readdirSync(ofRoot), ['a.backup', left], 'a command that fails leaves no file')
  t.ok(existsSync(join(empty, 'store/data.mdb')))
})
