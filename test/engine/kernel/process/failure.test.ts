import t from 'tap'
import { Fault } from '../../../../engine/kernel/process/error-codes.ts'
import { failureText, INTERNAL_ERROR, logFailure } from '../../../../engine/kernel/process/failure.ts'
import { capturedLog } from '../../../support/captured-log.ts'

t.test('a Fault is logged with its message, any other error with its stack', async (t) => {
  const full = new Fault('STORE_FULL', 'no space left')
  const bug = new TypeError('x is not a function')
  const error = { type: 'TypeError', message: bug.message, stack: bug.stack }
  const rows = [
    { failure: full, level: undefined, entry: { level: 50, reason: 'no space left' }, text: 'no space left' },
    { failure: full, level: 'warn', entry: { level: 40, reason: 'no space left' }, text: 'no space left' },
    { failure: bug, level: undefined, entry: { level: 50, err: error }, text: INTERNAL_ERROR },
    { failure: bug, level: 'warn', entry: { level: 50, err: error }, text: INTERNAL_ERROR },
    { failure: 'text', level: undefined, entry: { level: 50, err: 'text' }, text: INTERNAL_ERROR },
  ] as const
  for (const { failure, level, entry, text } of rows) {
    const { log, entries } = capturedLog()
    logFailure(log, failure, 'not done', { fields: { scan: 1 }, ...(level === undefined ? {} : { level }) })
    t.same(entries, [{ ...entry, scan: 1, msg: 'not done' }])
    t.equal(failureText(failure), text)
  }
})
