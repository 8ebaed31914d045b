import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { MADE_TABLES, pageText, withMadeTables } from '../../../deploy/docs/main.ts'
import { FORMATS } from '../../../engine/ingest/formats/formats.ts'
import { REPOSITORY } from '../../support/programs.ts'

for (const file of new Set(MADE_TABLES.map((table) => table.file))) {
  t.test(`docs/${file} says what the code says; npm run docs makes it so`, async (t) => {
    t.equal(withMadeTables(file, pageText(file)), pageText(file))
  })
}

t.test('a page without the markers of its table is noticed', async (t) => {
  t.throws(() => withMadeTables('reference/errors.md', '# Errors\n'), /no markers for the table faults/)
})

t.test('docs/reference/ingest.md names every format', async (t) => {
  const text = readFileSync(join(REPOSITORY, 'docs/reference/ingest.md'), 'utf8')
  const rows = text.slice(text.indexOf('| Format | Read are |'), text.indexOf('RFC 5424 is read in full'))
  const named = [...rows.matchAll(/`([a-z0-9-]+)`/g)].map(([, id]) => id)
  t.same(named.sort(), FORMATS.map(({ id }) => id).sort())
})
