import t from 'tap'
import { DropLog } from '../../../collector/collector.ts'
import { capturedLog } from '../../support/captured-log.ts'

t.test('drops are logged when they begin, and at most once a minute', async (t) => {
  const { log, entries } = capturedLog()
  const drops = new DropLog(log)
  drops.note({ full: 0, tooOld: 0, damaged: 0 })
  t.same(entries, [])
  drops.note({ full: 2, tooOld: 1, damaged: 0 })
  drops.note({ full: 2, tooOld: 1, damaged: 0 })
  drops.note({ full: 9, tooOld: 1, damaged: 0 })
  t.match(entries, [{ level: 50, full: 2, tooOld: 1, damaged: 0 }])
  t.equal(entries.length, 1)
})
