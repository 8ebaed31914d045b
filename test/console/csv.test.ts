import t from 'tap'
import { CSV_ROWS_MAX } from '../../console/design/list.tsx'
import { textColumn } from '../../console/design/table.tsx'
import { csvTable } from '../../console/http/csv.ts'
import { serveConsole } from '../support/console.ts'

const COLUMNS = [textColumn('name', 'Name', ({ name }: { name: string }) => name)]

for (const { rows, name } of [
  { rows: CSV_ROWS_MAX, name: 'clients.csv' },
  { rows: CSV_ROWS_MAX + 1, name: `clients-first-${CSV_ROWS_MAX}.csv` },
]) {
  t.test(`a table of ${rows} rows is the file ${name}`, async (t) => {
    const all = Array.from({ length: rows }, (_, at) => ({ name: `host-${at}` }))
    const answer = csvTable('clients', COLUMNS, all)
    t.equal(answer.name, name)
    t.equal(answer.body.trimEnd().split('\r\n').length, 1 + CSV_ROWS_MAX)
  })
}

t.test('a range that no page shows makes no file', async (t) => {
  const { signIn } = await serveConsole(t)
  const browser = signIn('ada@acme.example', 'admin')
  for (const query of [
    ...['days=8', 'instead=8', 'from=2026-11-31', 'from=2026-11-19&to=2026-11-18'],
    ...['from=2020-01-01&to=2020-01-02', 'from=x&to=99999-99-99'],
  ]) {
    for (const file of ['/platforms.csv', '/clients.csv', '/client-groups.csv', '/platforms/ChatGPT/clients.csv'])
      t.equal((await browser.get(`${file}?${query}`)).status, 400, `${file}?${query}`)
  }
  t.equal((await browser.get('/platforms.csv?days=7')).status, 200)
})
