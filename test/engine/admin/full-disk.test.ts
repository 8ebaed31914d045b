import { spawnSync } from 'node:child_process'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { skipUnlessRoot } from '../../support/other-user.ts'
import { admin, PROGRAMS } from '../../support/programs.ts'
import { SmallDisk } from '../../support/small-disk.ts'

/** Free space of the disk: the kernel writes the part of a file that fits, and reports its size. */
const PAGE_BYTES = 4096
const MEGABYTE = 1024 * 1024

/** All commands that write a file which the user names; FILE is the name. */
const ROWS: readonly { readonly words: string; readonly freePages: number; readonly error: RegExp }[] = [
  { words: 'blocklist --not-approved --format edl --out FILE', freePages: 1, error: /EXPORT_FILE --out .*no space/ },
  { words: 'blocklist --not-approved --format edl > FILE', freePages: 1, error: /standard output: no space left/ },
  { words: 'export platforms --format html --out FILE', freePages: 0, error: /EXPORT_FILE --out .*no space/ },
  {
    words: 'export platforms --format csv --out /dev/null --cursor FILE',
    freePages: 0,
    error: /EXPORT_FILE --cursor .*no space/,
  },
  { words: 'report --out FILE', freePages: 1, error: /EXPORT_FILE --out .*no space/ },
  { words: 'report --out - > FILE', freePages: 1, error: /standard output: no space left/ },
  { words: 'assessment export ID --output FILE', freePages: 1, error: /ASSESSMENT_FILE --output .*no space/ },
  { words: 'assessment export ID > FILE', freePages: 1, error: /standard output: no space left/ },
  { words: 'registry list > FILE', freePages: 1, error: /standard output: no space left/ },
  { words: 'backup FILE', freePages: 1, error: /STORE_FULL .*no space left/ },
  {
    words: 'organization remove Acme --confirm Acme --audit-file FILE',
    freePages: 0,
    error: /AUDIT_FILE --audit-file .*no space/,
  },
]

t.test('a command on a full disk fails, and leaves no part of its file', { skip: skipUnlessRoot }, async (t) => {
  const data = ['--data-dir', join(t.testdir(), 'data')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  await admin('scan', 'run', ...data)
  const [assessment] = await admin('assessment', 'create', '--framework', 'nist-csf-2', ...data)
  const disk = new SmallDisk(t, 1)
  for (const { words, freePages, error } of ROWS) {
    const file = join(disk.directory, 'file')
    const isRedirected = words.includes('>')
    if (isRedirected) writeFileSync(file, '')
    disk.fillUpTo((freePages * PAGE_BYTES) / MEGABYTE)
    const line = words.replace('FILE', file).replace('ID', String(assessment?.['id']).slice(0, 8))
    const [before = '', after = ''] = line.split('>')
    const command = `"${process.execPath}" "${PROGRAMS.admin}" ${before} ${data.join(' ')} ${isRedirected ? `>${after}` : ''}`
    const { status, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8', cwd: t.testdirName })
    t.not(status, 0, words)
    t.match(stderr, error, words)
    t.notMatch(stderr, /INTERNAL/, words)
    t.same(readdirSync(disk.directory), isRedirected ? ['ballast', 'file'] : ['ballast'], words)
    disk.free()
    rmSync(file, { force: true })
  }
})
