import t from 'tap'
import { FAULTS, Fault, type FaultCode } from '../../../../engine/kernel/process/error-codes.ts'

t.test('every code becomes the exit status in the table', async (t) => {
  for (const code of Object.keys(FAULTS) as FaultCode[]) {
    const fault = new Fault(code, 'message')
    t.equal(fault.exitStatus, FAULTS[code].exit, code)
    t.not(fault.exitStatus, 0, `${code} is no success`)
  }
})
