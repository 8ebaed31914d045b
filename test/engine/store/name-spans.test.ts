import t from 'tap'
import { NAME_SPANS_PER_ADDRESS_MAX } from '../../../engine/limits.ts'
import { endedAt, type NameSpan, namesIn, namesText, withSpan } from '../../../engine/store/name-spans.ts'

const END = Number.POSITIVE_INFINITY

/** `a 1 3` or `a 1`: the name and its time. */
function spans(text: string): NameSpan[] {
  return text === ''
    ? []
    : text.split(', ').map((each) => {
        const [name = '', from = '', to = ''] = each.split(' ')
        return { name, fromMs: Number(from), toMs: to === '' ? END : Number(to) }
      })
}

t.test('a span replaces others in its time, and joins those of the same name', async (t) => {
  for (const [before, added, after] of [
    ['', 'a 1 3', 'a 1 3'],
    ['a 1 3', 'a 3 5', 'a 1 5'],
    ['a 1 3', 'a 2 5', 'a 1 5'],
    ['a 2 5', 'a 1 3', 'a 1 5'],
    ['a 1 3', 'a 4 5', 'a 1 3, a 4 5'],
    ['a 1 3', 'b 3 5', 'a 1 3, b 3 5'],
    ['a 1', 'b 3 5', 'a 1 3, b 3 5, a 5'],
    ['a 1 3, b 3 5, a 5', 'a 3 5', 'a 1'],
    ['a 1 3, b 3 5, c 5', 'd 2 6', 'a 1 2, d 2 6, c 6'],
    ['a 1 3', 'b 0', 'b 0'],
    ['a 1 3', 'b 2 2', 'a 1 3'],
    ['a 1 3', 'b 3 2', 'a 1 3'],
  ] as const) {
    const [span] = spans(added)
    t.same(withSpan(spans(before), span as NameSpan), spans(after), `${before} and ${added}`)
  }
})

t.test('an address has few names; the oldest leave first', async (t) => {
  let all: NameSpan[] = []
  for (let at = 0; at <= NAME_SPANS_PER_ADDRESS_MAX; at++)
    all = withSpan(all, { name: `n${at}`, fromMs: at + 1, toMs: END })
  t.equal(all.length, NAME_SPANS_PER_ADDRESS_MAX)
  t.match([all[0], all.at(-1)], [{ name: 'n1' }, { name: `n${NAME_SPANS_PER_ADDRESS_MAX}` }])
})

t.test('names end at a time', async (t) => {
  t.same(endedAt(spans('a 1 3, b 3 5, c 5'), 4), spans('a 1 3, b 3 4'))
  t.same(endedAt(spans('a 1 3'), 4), spans('a 1 3'))
})

t.test('the names in a range of time: that of its end, and earlier ones', async (t) => {
  for (const [from, to, text] of [
    [0, 0, ''],
    [1, 2, 'a'],
    [3, 3, 'b'],
    [1, 3, 'b, +1 earlier'],
    [1, 5, 'earlier b, +1'],
    [4, 6, 'earlier b'],
    [5, 6, ''],
    [1, 7, 'a, +1 earlier'],
    [1, 9, 'c, +2 earlier'],
    [9, 9, 'c'],
  ] as const) {
    t.equal(namesText(namesIn(spans('a 1 3, b 3 5, a 7 9, c 9'), from, to)), text, `${from} to ${to}`)
  }
})
