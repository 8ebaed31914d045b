import type { AssessmentContent } from '../../engine/assess/transfer-json.ts'
import { type Answer, WORD_ANSWERS } from '../../engine/store/assessments.ts'
import { FRAMEWORK_IDS } from '../../engine/store/framework.ts'
import * as fc from './property.ts'

const anyLine = fc
  .oneof(
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.stringMatching(/^['=+@;,"\-\t a-c1]{1,12}$/),
    fc.constantFrom('=1+1', "'=1", "''@x", '-', "'", "'plain", '"', 'a"b', '＝x', ',', ';'),
  )
  .map((text) => text.replace(/[\p{Cc}\p{Cs}]/gu, '').trim())
  .filter((text) => text !== '' && Buffer.byteLength(text) <= 255)
const anyNote = fc.array(fc.oneof(anyLine, fc.constant('')), { maxLength: 4 }).map((lines) => lines.join('\n').trim())
const anyWeight = fc.integer({ min: 1, max: 1_000_000 }).map((thousandths) => thousandths / 1000)
const anyItem = fc.record({
  id: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9.:()/_-]{0,9}$/),
  title: anyLine,
  weight: anyWeight,
  priority: fc.integer({ min: 1, max: 5 }),
  recommendation: anyLine,
  answer: fc.oneof(fc.constantFrom(...WORD_ANSWERS), fc.integer({ min: 0, max: 100 })) as fc.Arbitrary<Answer>,
  note: anyNote,
})
/** The content of any assessment, with every text and answer that the rules allow. */
export const anyContent: fc.Arbitrary<AssessmentContent> = fc.record({
  frameworkId: fc.constantFrom(...FRAMEWORK_IDS),
  title: anyLine,
  categories: fc
    .uniqueArray(
      fc.record({
        name: anyLine,
        weight: anyWeight,
        items: fc.array(anyItem, { minLength: 1, maxLength: 5 }),
      }),
      { minLength: 1, maxLength: 5, selector: ({ name }) => name },
    )
    .map((categories) => {
      // IDs are unique in an assessment. A number as suffix makes them so.
      let count = 0
      return categories.map((each) => ({
        ...each,
        items: each.items.map((one) => ({ ...one, id: `${one.id}-${count++}` })),
      }))
    }),
})
