import t from 'tap'
import { openingFault } from '../../../collector/capture/pcap-session.ts'
import { failedBy } from '../../../collector/check/step.ts'
import { Fault } from '../../../engine/kernel/process/error-codes.ts'

const NOWHERE = "no directory for the program's addons: /a: no permission; /b: mounted noexec"

t.test('a step reports its finding and a fix', async (t) => {
  const rows = [
    { message: 'lo: the interface is down', found: 'lo: the interface is down', fix: '' },
    { message: '--outbox /a: not ours; name another', found: '--outbox /a: not ours', fix: 'name another' },
    { message: `${NOWHERE}; set POSTURE_UNPACK_DIR`, found: NOWHERE, fix: 'set POSTURE_UNPACK_DIR' },
  ]
  for (const { message, ...expected } of rows) {
    t.same(failedBy(new Fault('USAGE', message)), { result: 'failed', code: 'USAGE', ...expected }, message)
  }
})

t.test('an addon that cannot be unpacked is not reported as an interface error', async (t) => {
  const fault = new Fault('UNPACK_DENIED', `${NOWHERE}; set POSTURE_UNPACK_DIR`)
  t.equal(openingFault('lo', 'port 53', fault), fault, 'although its message mentions permission')
  t.match(openingFault('lo', '', new Error('no permission')), {
    code: 'CAPTURE_DENIED',
    message: /^lo: no permission to capture; /,
  })
})
