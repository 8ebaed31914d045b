import { PassThrough } from 'node:stream'
import t from 'tap'
import { Canceled, Questions } from '../../../../engine/kernel/process/questions.ts'

/** Questions to somebody who types, and what was printed so far. */
function terminal() {
  const input = new PassThrough()
  const output = new PassThrough()
  let printed = ''
  output.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  return { input, questions: new Questions(input, output), printed: () => printed }
}

t.test('a question is asked again until its answer can be read', async (t) => {
  const { input, questions, printed } = terminal()
  const problem = (text: string) => (text === 'wrong' ? 'That is wrong' : undefined)
  const answer = questions.text('Name', { problem })
  input.write('wrong\n\n  right \n')
  t.equal(await answer, 'right')
  t.equal(printed(), 'Name: That is wrong\nName: An answer is required\nName: ')
  questions.close()
})

t.test('lines that are typed ahead answer the next questions, also after the end of the input', async (t) => {
  const { input, questions } = terminal()
  input.end('\nother\n')
  t.equal(await questions.text('First', { byDefault: 'default' }), 'default')
  t.equal(await questions.text('Second', { byDefault: 'default' }), 'other')
  await t.rejects(questions.text('Third', { byDefault: 'default' }), new Canceled())
})

t.test('choices by number and by name', async (t) => {
  const { input, questions, printed } = terminal()
  const choices = questions.choices('Pets', ['cat', 'dog', 'cow'])
  input.write('\n4\n0\ncat,\n')
  t.same(await choices, ['cat'])
  const ask = 'Numbers or names, comma-separated: '
  t.equal(
    printed(),
    `Pets:\n  1  cat\n  2  dog\n  3  cow\n${ask}Choose at least one\n${ask}"4" is none of them\n${ask}"0" is none of them\n${ask}`,
  )
  const others = questions.choices('Pets', ['cat', 'dog', 'cow'])
  input.write('3, dog 3\n')
  t.same(await others, ['cow', 'dog'])
  questions.close()
})

t.test('the end of the input ends a waiting question', async (t) => {
  const { input, questions } = terminal()
  const answer = questions.text('Name')
  input.end()
  await t.rejects(answer, new Canceled())
})
