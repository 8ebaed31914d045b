import { execFileSync } from 'node:child_process'
import { lstatSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withNewFile } from '../../../../engine/kernel/process/new-file.ts'
import { skipUnlessRoot } from '../../../support/other-user.ts'

const write = (path: string): Promise<void> =>
  withNewFile('--out', path, { mode: 0o600 }, async (file) => {
    file?.write('content')
    await file?.complete()
  })

t.test('a file appears when it is complete, and replaces the file of that name', async (t) => {
  const directory = t.testdir({ 'a.csv': 'before' })
  const path = join(directory, 'a.csv')
  await write(path)
  t.equal(readFileSync(path, 'utf8'), 'content')
  await t.rejects(
    withNewFile('--out', path, { mode: 0o600 }, async (file) => {
      file?.write('other')
      throw new Error('stopped')
    }),
  )
  t.equal(readFileSync(path, 'utf8'), 'content')
  t.same(readdirSync(directory), ['a.csv'])
})

t.test('a device is written to, also through a link, and not replaced', { skip: skipUnlessRoot }, async (t) => {
  const directory = t.testdir()
  const device = join(directory, 'null')
  execFileSync('mknod', [device, 'c', '1', '3'])
  symlinkSync('null', join(directory, 'link'))
  for (const name of ['null', 'link']) await write(join(directory, name))
  t.ok(lstatSync(device).isCharacterDevice())
  t.ok(lstatSync(join(directory, 'link')).isSymbolicLink())
  t.same(readdirSync(directory).sort(), ['link', 'null'])
})
