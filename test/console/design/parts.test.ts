import type { VNode } from 'preact'
import { render } from 'preact-render-to-string'
import t from 'tap'
import { Bar, niceTop, Shares, Timeline } from '../../../console/design/chart.tsx'
import { html as template } from '../../../console/design/html.ts'
import { countOf, lastDays, relativeTime, retryText, Tag } from '../../../console/design/parts.tsx'
import { type Dot, Scatter } from '../../../console/design/scatter.tsx'
import { type Column, sorted, sortingOf } from '../../../console/design/table.tsx'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../engine/kernel/process/clock.ts'

const html = (node: VNode): string => render(node)

t.test('a template escapes its values once, in texts and attributes, alone and in lists', async (t) => {
  const value = `"a" & <b> 'c'`
  const escaped = "&quot;a&quot; &amp; &lt;b> 'c'"
  const inner = template`<i title="${value}">${value}</i>`
  t.equal(html(inner), `<i title="${escaped}">${escaped}</i>`)
  t.equal(html(template`<p>${inner}, ${1}${0}</p>`), `<p><i title="${escaped}">${escaped}</i>, 10</p>`)
  t.equal(html(template`<p>${[value, inner, 2]}</p>`), `<p>${escaped}<i title="${escaped}">${escaped}</i>2</p>`)
  t.equal(html(template`<p>${undefined}${null}${false}${true}${''}</p>`), '<p></p>')
  t.equal(
    html(template`<p>${Tag({ tone: 'bad', children: value })}</p>`),
    `<p><span class="tag bad">${escaped}</span></p>`,
  )
})

t.test('a timeline has a bar for each day that has clients, within its box', async (t) => {
  const days = [0, 5, 100, 3].map((clients, at) => ({ day: 20_400 + at, approved: clients, notApproved: at }))
  const text = html(Timeline({ days, label: 'Use per day', unit: 'client', width: 300, height: 100 }))
  t.match(text, /role="img" aria-label="Use per day"/)
  t.equal([...text.matchAll(/class="approved"/g)].length, 3)
  t.equal([...text.matchAll(/class="shadow"/g)].length, 3)
  t.match(text, /2 clients not approved, 100 approved/)
  for (const [, x, y, width, height] of text.matchAll(
    /<rect[^>]* x="([\d.-]+)" y="([\d.-]+)" width="([\d.-]+)" height="([\d.-]+)"/g,
  )) {
    t.ok(Number(x) >= 0 && Number(x) + Number(width) <= 300 && Number(y) >= 0 && Number(y) + Number(height) <= 100)
  }
  t.notMatch(text, /NaN|Infinity|style=/)
  t.notMatch(html(Timeline({ days: [], label: 'none', unit: 'client' })), /NaN|Infinity/)
})

t.test('the top of an axis', async (t) => {
  for (const [most, top] of [
    [0, 2],
    [1, 2],
    [3, 4],
    [5, 6],
    [11, 20],
    [101, 200],
    [173, 200],
    [450, 500],
    [999, 1000],
  ] as const) {
    t.equal(niceTop(most), top, `${most}`)
  }
})

t.test('shares stay within the bar', async (t) => {
  t.match(html(Bar({ share: 2, label: 'x' })), /class="value" width="100"/)
  t.match(html(Bar({ share: -1, label: 'x' })), /class="value" width="0"/)
  t.match(html(Shares({ parts: [{ tone: 'approved', share: 0 }], label: 'x' })), /width="0"/)
})

t.test('times in words', async (t) => {
  const now = 100 * DAY_MS
  for (const [distance, text] of [
    [0, 'just now'],
    [MINUTE_MS - 1, 'just now'],
    [MINUTE_MS, '1 minute ago'],
    [119 * MINUTE_MS, '1 hour ago'],
    [47 * HOUR_MS, '1 day ago'],
    [94 * DAY_MS, '94 days ago'],
    [-21 * MINUTE_MS, 'in 21 minutes'],
    [-1, 'in a moment'],
  ] as const) {
    t.equal(relativeTime(now - distance, now), text)
  }
})

interface Row {
  readonly name: string
  readonly count: number
}
const COLUMNS: readonly Column<Row>[] = [
  { id: 'name', name: 'Name', cell: ({ name }) => name, sort: ({ name }) => name, csv: ({ name }) => name },
  { id: 'count', name: 'Count', sort: ({ count }) => count, csv: ({ count }) => count, number: true },
  { id: 'do', name: 'Do', cell: () => 'x' },
]
const FIRST = { by: 'name', direction: 'ascending' } as const

t.test('a table is sorted by what the query names, if it has such a column', async (t) => {
  const of = (query: string) => sortingOf(COLUMNS, new URLSearchParams(query), FIRST)
  t.same(of('sort=-count'), { by: 'count', direction: 'descending' })
  for (const query of ['', 'sort=', 'sort=do', 'sort=__proto__', 'sort=--count']) t.same(of(query), FIRST, query)
  const rows = ['b10', 'b9', 'a'].map((name, count) => ({ name, count }))
  t.same(
    sorted(rows, COLUMNS, FIRST).map(({ name }) => name),
    ['a', 'b9', 'b10'],
  )
  t.same(
    sorted(rows, COLUMNS, of('sort=-count')).map(({ count }) => count),
    [2, 1, 0],
  )
})

t.test('counts have the right plural', async (t) => {
  t.same(
    [countOf(0, 'client'), countOf(1, 'client'), countOf(1234, 'client')],
    ['0 clients', '1 client', '1,234 clients'],
  )
  t.equal(countOf(2, 'match', 'matches'), '2 matches')
  t.same([lastDays(1), lastDays(30)], ['last day', 'last 30 days'])
  t.same([retryText(1), retryText(61)], ['Try again in 1 minute', 'Try again in 2 minutes'])
})

/** The letters of small.css and chart.css, as wide as a capital M at most times. */
const SIZES = [
  { where: 'a phone', letter: 18 * 0.6, isShown: (label: string) => !label.includes('wide-only') },
  { where: 'a desktop', letter: 12 * 0.58, isShown: () => true },
]

t.test('labels of the chart of risk and clients overlap on no screen', async (t) => {
  const dotsOf = (seed: number): Dot[] =>
    Array.from({ length: 10 + (seed % 30) }, (_, at) => ({
      name: `Platform ${'x'.repeat((seed + at) % 9)}${at}`,
      risk: (seed * 31 + at * 17) % 101,
      clients: 1 + ((seed * 7 + at * at * 13) % 90),
      approved: at % 3 === 0,
    }))
  let wideOnly = 0
  for (let seed = 0; seed < 50; seed++) {
    const text = html(Scatter({ dots: dotsOf(seed), label: 'x' }))
    const found = [
      ...text.matchAll(/<text class="(label[^"]*)" x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]*)/g),
    ]
    wideOnly += found.filter(([, name = '']) => name.includes('wide-only')).length
    for (const { where, letter, isShown } of SIZES) {
      const boxes = found
        .filter(([, name = '']) => isShown(name))
        .map(([, , x, y, anchor, label = '']) => {
          const width = label.length * letter
          const left = anchor === 'end' ? Number(x) - width : Number(x)
          return { label, left, right: left + width, y: Number(y) }
        })
      t.ok(boxes.length > 0)
      for (const [at, one] of boxes.entries()) {
        t.ok(one.left >= 0 && one.right <= 480, `${one.label} is in the chart on ${where}`)
        for (const other of boxes.slice(at + 1)) {
          const isClear =
            one.right <= other.left || other.right <= one.left || Math.abs(one.y - other.y) >= letter * 1.2
          t.ok(isClear, `${one.label} and ${other.label} on ${where}`)
        }
      }
    }
  }
  t.ok(wideOnly > 0, 'a desktop shows more labels than a phone')
})
