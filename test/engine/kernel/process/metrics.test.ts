import t from 'tap'
import { type MetricRow, Metrics } from '../../../../engine/kernel/process/metrics.ts'

/** The lines of one metric, without those of the process. */
function lines(row: MetricRow): readonly string[] {
  const metrics = new Metrics()
  t.teardown(() => metrics.close())
  return metrics
    .render([row])
    .body.split('\n')
    .filter((line) => line.includes(row[0]))
}

t.test('the text format of Prometheus', async (t) => {
  const about = ['# HELP a_b Of both', '# TYPE a_b gauge']
  const rows: { readonly name: string; readonly row: MetricRow; readonly samples: readonly string[] }[] = [
    { name: 'one value', row: ['a_b', 'gauge', 'Of both', 0.5], samples: ['a_b 0.5'] },
    {
      name: 'a value for each value of one label',
      row: ['a_b', 'gauge', 'Of both', { x: 1, y: 2 }, 'kind'],
      samples: ['a_b{kind="x"} 1', 'a_b{kind="y"} 2'],
    },
    {
      name: 'several labels',
      row: ['a_b', 'gauge', 'Of both', [{ labels: { kind: 'x', at: 'y' }, value: 3 }]],
      samples: ['a_b{kind="x",at="y"} 3'],
    },
    { name: 'no value has no sample, because 0 would be one', row: ['a_b', 'gauge', 'Of both', []], samples: [] },
    {
      name: 'a backslash, a quote and a line break in a label',
      row: ['a_b', 'gauge', 'Of both', { 'a"b\\c\nd': 1 }, 'kind'],
      samples: ['a_b{kind="a\\"b\\\\c\\nd"} 1'],
    },
    { name: 'not a number', row: ['a_b', 'gauge', 'Of both', Number.NaN], samples: ['a_b NaN'] },
  ]
  for (const { name, row, samples } of rows) t.same(lines(row), [...about, ...samples], name)
  t.same(lines(['a_b', 'counter', 'Two\\\nlines', 1]), ['# HELP a_b Two\\\\\\nlines', '# TYPE a_b counter', 'a_b 1'])
})
