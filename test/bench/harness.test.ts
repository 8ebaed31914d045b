import t from 'tap'
import { figureLines, inTurn, same, valuesInTurn } from '../../bench/harness.ts'

t.test('contenders work in turn; a figure is the median of the rounds', async (t) => {
  const turns: string[] = []
  const contender = (name: string, values: readonly number[]) => ({
    name,
    run: (round: number) => {
      turns.push(`${name}${round}`)
      return values[round] ?? 0
    },
  })
  const figure = await inTurn(3, [contender('ours', [9, 3, 5]), contender('peer', [2, 1, 40])])
  t.same(figure, { ours: 5, peers: [{ name: 'peer', value: 2 }] })
  t.same(turns, ['ours0', 'peer0', 'ours1', 'peer1', 'ours2', 'peer2'])
  const both = await valuesInTurn(1, [{ name: 'ours', run: () => [1, 2] }])
  t.same(both, [
    { ours: 1, peers: [] },
    { ours: 2, peers: [] },
  ])
})

t.test('a contender that did other work ends the benchmark', async (t) => {
  same('peer', { a: 1 }, { a: 1 })
  t.throws(() => same('peer', 2, 1), { message: 'peer: found 2, expected 1' })
})

const FIGURES = [
  [{ unit: 's', ours: 0.784 }, 'decode: 0.784 s'],
  [{ unit: 's', ours: 2, aim: { atMost: 1.5 } }, 'decode: 2 s; aim 1.5 not reached'],
  [
    {
      unit: 'events/s',
      ours: 2_050_000,
      peers: [{ name: 'SQLite', value: 512_500 }],
      aim: { ratio: true, atLeast: 4 },
    },
    'decode: 2,050,000 events/s; 4x SQLite (512,500); aim 4x reached',
  ],
] as const
for (const [figure, line] of FIGURES) {
  t.test(line, async (t) => t.equal(figureLines({ what: 'decode', ...figure }), line))
}
