import t from 'tap'
import { MADE_TABLES, pageText, withMadeTables } from '../../deploy/docs.ts'

for (const file of new Set(MADE_TABLES.map((table) => table.file))) {
  t.test(`docs/${file} says what the code says; npm run docs makes it so`, async (t) => {
    t.equal(withMadeTables(file, pageText(file)), pageText(file))
  })
}

t.test('a page without the markers of its table is noticed', async (t) => {
  t.throws(() => withMadeTables('errors.md', '# Errors\n'), /no markers for the table faults/)
})
