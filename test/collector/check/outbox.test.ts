import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { checkOutbox } from '../../../collector/check/outbox.ts'
import { collectorSettings } from '../../../collector/config.ts'
import { Outbox } from '../../../collector/outbox/outbox.ts'

const check = async (outbox: string) =>
  checkOutbox(collectorSettings.parse({ token: `svc_mt_${'7'.repeat(48)}`, outbox }))

t.test('a check does not create the outbox directory', async (t) => {
  const directory = t.testdir()
  t.match(await check(join(directory, 'a/b/c')), { result: 'ok', found: /\/a\/b\/c: can be created, \d+ MB free$/ })
  t.same(readdirSync(directory), [])
  mkdirSync(join(directory, 'empty'))
  t.match(await check(join(directory, 'empty')), { result: 'ok', found: /can be written, and is empty, \d+ MB free$/ })
  t.same(readdirSync(join(directory, 'empty')), [], 'an existing directory does not change')
})

t.test('a check reads an outbox that another process has open', async (t) => {
  const directory = t.testdir()
  const outbox = new Outbox(directory)
  t.teardown(() => outbox.close())
  t.match(await check(directory), { result: 'ok', found: /: 0 events wait, / }, 'also before the first event')
  const seen = { client: '10.0.0.1', method: 'dns', firstSeenMs: 1, lastSeenMs: 1, count: 1 } as const
  outbox.write({
    added: [
      { name: 'claude.ai', ...seen },
      { name: 'chatgpt.com', ...seen },
    ],
  })
  t.match(await check(directory), { result: 'ok', found: /: 2 events wait, \d+ MB free$/ })
  outbox.write({ added: [{ name: 'claude.ai', ...seen }] })
  t.equal(outbox.waiting, 3, 'the other process continues')
})

const REFUSED: readonly { name: string; make: (directory: string) => string; code: string; message: RegExp }[] = [
  {
    name: 'a file',
    make: (directory) => join(directory, 'file'),
    code: 'STORE_UNWRITABLE',
    message: /: not a directory; name a directory/,
  },
  {
    name: 'a path below a file',
    make: (directory) => join(directory, 'file/outbox'),
    code: 'STORE_UNWRITABLE',
    message: /: not a directory; name/,
  },
  {
    name: 'a directory that cannot be created',
    make: () => '/proc/outbox',
    code: 'STORE_UNWRITABLE',
    message: /: it cannot be created here; /,
  },
  {
    name: 'a file that is not an LMDB file',
    make(directory) {
      writeFileSync(join(directory, 'data.mdb'), 'x'.repeat(9999))
      return directory
    },
    code: 'STORE_DAMAGED',
    message: /not an LMDB file; restore a backup/,
  },
]
for (const { name, make, code, message } of REFUSED) {
  t.test(`refused: ${name}`, async (t) => {
    const directory = t.testdir({ file: '' })
    await t.rejects(check(make(directory)), { code, message })
    t.ok(existsSync(join(directory, 'file')))
  })
}
