import t from 'tap'
import { CSV_ROWS_MAX } from '../../console/design/list.tsx'
import { textColumn } from '../../console/design/table.tsx'
import { csvTable } from '../../console/http/csv.ts'

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
