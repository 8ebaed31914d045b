import { setTimeout as later } from 'node:timers/promises'
import t from 'tap'
import { CaptureWorker } from '../../../collector/pipeline/capture-worker.ts'
import { observe } from '../../../collector/pipeline/observe.ts'
import { TRIE } from '../decode-frames.ts'

for (const [when, ms] of [
  ['while it loads', 0],
  ['while it waits', 500],
] as const) {
  t.test(`a thread that is canceled ${when} ends`, async (t) => {
    const thread = new CaptureWorker()
    await later(ms)
    thread.cancel()
    await t.resolves(thread.exited)
    await t.rejects(thread.first(), /ended without a message/)
  })

  t.test(`a thread that is started ${when} does its work`, async (t) => {
    const thread = new CaptureWorker()
    await later(ms)
    const source = { kind: 'file', path: '/does/not/exist.pcap' } as const
    await t.rejects(observe(source, { trie: TRIE, lanes: 0, onNames: () => {}, thread }), {
      code: 'CAPTURE_UNREADABLE',
    })
    thread.cancel()
    await t.resolves(thread.exited)
  })
}
