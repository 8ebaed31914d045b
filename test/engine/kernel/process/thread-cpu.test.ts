import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { threadCpuMs } from '../../../../engine/scan/scan-runner.ts'

/** Spins until the process has taken this much more CPU time. */
function spin(milliseconds: number): void {
  const before = process.cpuUsage()
  for (let spent = 0; spent < milliseconds; ) {
    const { user, system } = process.cpuUsage(before)
    spent = (user + system) / 1000
  }
}

t.test('the CPU time of this thread is counted', async (t) => {
  const before = threadCpuMs()
  spin(500)
  const spentMs = threadCpuMs() - before
  // Other threads of the process collect garbage and compile.
  t.ok(spentMs > 250, `${spentMs} ms of 500`)
  t.ok(spentMs <= 600, `${spentMs} ms of 500`)
})

t.test('that of another thread is not', async (t) => {
  const before = threadCpuMs()
  const worker = new Worker(
    `const before = process.cpuUsage()
    for (let spent = 0; spent < 1000; ) { const { user, system } = process.cpuUsage(before); spent = (user + system) / 1000 }`,
    { eval: true },
  )
  await once(worker, 'exit')
  const spentMs = threadCpuMs() - before
  t.ok(spentMs < 500, `${spentMs} ms, while the other thread took about 1000`)
})
