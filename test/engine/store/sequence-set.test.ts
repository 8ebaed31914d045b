import t from 'tap'
import { SequenceSet } from '../../../engine/store/seen-instance.ts'
import * as fc from '../../support/property.ts'

t.test('the set behaves like a Set, with ranges that neither touch nor overlap', async () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 120 }), (sequences) => {
      const set = new SequenceSet()
      const model = new Set<number>()
      for (const sequence of sequences) {
        if (set.add(sequence) === model.has(sequence)) return false
        model.add(sequence)
      }
      const { ranges } = set
      const held: number[] = []
      for (let at = 0; at < ranges.length; at += 2) {
        const [first = 0, last = 0] = [ranges[at], ranges[at + 1]]
        if (first > last || (at > 0 && first <= (ranges[at - 1] ?? 0) + 1)) return false
        for (let each = first; each <= last; each++) held.push(each)
      }
      return JSON.stringify(held) === JSON.stringify([...model].sort((a, b) => a - b))
    }),
    { numRuns: 3000 },
  )
})

t.test('a range is added like its numbers, or not at all', async () => {
  const range = fc.tuple(fc.integer({ min: 1, max: 80 }), fc.nat(12))
  fc.assert(
    fc.property(fc.array(range, { maxLength: 40 }), (ranges) => {
      const set = new SequenceSet()
      const model = new SequenceSet()
      const held = new Set<number>()
      for (const [first, more] of ranges) {
        const all = Array.from({ length: more + 1 }, (_, index) => first + index)
        const isNew = all.every((sequence) => !held.has(sequence))
        if (set.addRange(first, first + more) !== isNew) return false
        if (JSON.stringify(set.ranges) !== JSON.stringify(model.ranges) && !isNew) return false
        if (!isNew) for (const sequence of all) set.add(sequence)
        for (const sequence of all) {
          model.add(sequence)
          held.add(sequence)
        }
        if (JSON.stringify(set.ranges) !== JSON.stringify(model.ranges)) return false
      }
      return true
    }),
    { numRuns: 3000 },
  )
})

t.test('the set continues after its stored ranges', async (t) => {
  const set = new SequenceSet([1, 5, 9, 9])
  t.equal(set.add(5), false)
  t.equal(set.add(7), true)
  t.equal(set.add(6), true)
  t.equal(set.add(8), true)
  t.same(set.ranges, [1, 9])
})

t.test('its lowest ranges are removed', async (t) => {
  const set = new SequenceSet([1, 5, 9, 9, 12, 20])
  t.same(set.takeLowest(2), [1, 5, 9, 9])
  t.same(set.ranges, [12, 20])
  t.equal(set.rangeCount, 1)
  t.equal(set.add(9), true, 'the set no longer has them')
})
