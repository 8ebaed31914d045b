import { parse } from 'csv-parse/sync'
import t from 'tap'
import { type Column, csvOf } from '../../../console/design/table.tsx'

const COLUMNS: readonly Column<string>[] = [{ id: 'text', name: 'Text', csv: (text) => text }]
/** Of a cell that a spreadsheet would take for a formula. */
const FORMULAS = ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', ' =1', '\n=1', '＝1', '＋1', '－1', '＠A1']

t.test('no cell of a CSV file is a formula, and every other text stays as it is', (t) => {
  const plain = ['a=b', 'a,b', 'a "quoted" word', 'two\nlines', 'Zürich 漢字 🙂', '', "'quoted"]
  const text = csvOf(COLUMNS, [...FORMULAS, ...plain])
  t.ok(text.startsWith('Text\r\n'), 'RFC 4180')
  const rows = parse(text, { columns: true }) as { Text: string }[]
  t.same(
    rows.map((row) => row.Text),
    [...FORMULAS.map((formula) => `'${formula}`), ...plain],
  )
  t.end()
})
