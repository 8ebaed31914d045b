import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { type ProcessIdentity, runsElsewhere, thisProcess } from '../../../collector/outbox/owner.ts'

const CHILD = `
  import('${new URL('../../../collector/outbox/owner.js', import.meta.url).href}').then(({ thisProcess }) => {
    console.log(JSON.stringify(thisProcess()))
    setInterval(() => {}, 1000)
  })`

t.test('another process is known while it runs, and not by its number alone', async (t) => {
  const child = spawn(process.execPath, ['-e', CHILD], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const other = JSON.parse(line.toString()) as ProcessIdentity
  t.equal(other.pid, child.pid)
  t.equal(runsElsewhere(other), true)
  t.equal(runsElsewhere({ ...other, startTicks: other.startTicks - 1 }), false, 'a number that was given anew')
  t.equal(runsElsewhere({ ...other, bootId: 'of another start of the machine' }), false)
  t.equal(runsElsewhere({ ...other, namespace: 'pid:[1]' }), false, 'of another container')
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  t.equal(runsElsewhere(other), false)
})

t.test('this process is no other', async (t) => {
  const self = thisProcess()
  t.equal(self.pid, process.pid)
  t.ok(self.startTicks > 0 && self.bootId !== '' && self.namespace.startsWith('pid:'))
  t.equal(runsElsewhere(self), false)
})
