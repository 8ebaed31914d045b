import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import t from 'tap'
import { Outbox } from '../../../collector/outbox/outbox.ts'
import type { NewEvent } from '../../../collector/outbox/waiting-event.ts'

function eventNumber(number: number): NewEvent {
  return {
    name: `h${number}.claude.ai`,
    client: '10.0.0.1',
    method: 'dns',
    firstSeenMs: number,
    lastSeenMs: number,
    count: 1,
  }
}

const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 0, max: 4 }) }),
    fc.record({ kind: fc.constant('acknowledge' as const), count: fc.integer({ min: 1, max: 5 }) }),
    fc.record({ kind: fc.constant('reopen' as const), count: fc.constant(0) }),
  ),
  { maxLength: 20 },
)

t.test(
  'an outbox does what a plain array does; ids are given once, also after it was empty and reopened',
  async (t) => {
    const directory = t.testdir()
    let run = 0
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const path = `${directory}/${run++}`
        let outbox = new Outbox(path)
        const model: NewEvent[] = []
        const given = new Map<string, string>()
        let made = 0
        for (const { kind, count } of all) {
          if (kind === 'append') {
            const events = Array.from({ length: count }, () => eventNumber(++made))
            outbox.write({ added: events, position: { source: 'file', framesDone: made } })
            model.push(...events)
          } else if (kind === 'acknowledge') {
            const waiting = outbox.lend(count, 1e9)
            if (waiting !== undefined) outbox.acknowledge(waiting.lastSequence)
            model.splice(0, count)
          } else {
            await outbox.close()
            outbox = new Outbox(path)
          }
          t.equal(outbox.waiting, model.length)
          t.equal(outbox.framesDone('file'), all.some((step) => step.kind === 'append') ? made : 0)
          const events = outbox.lend(1000, 1e9)?.events ?? []
          t.same(
            events.map(({ id, ...event }) => {
              t.equal(given.get(id) ?? event.name, event.name, 'an id is of one event')
              given.set(id, event.name)
              return event
            }),
            model,
          )
        }
        await outbox.close()
      }),
      { numRuns: 20 },
    )
  },
)

t.test('two outboxes give different ids; one keeps its instance', async (t) => {
  const idsOf = async (path: string): Promise<string> => {
    const outbox = new Outbox(path)
    outbox.write({ added: [eventNumber(1)] })
    const id = outbox.lend(1, 1)?.events[0]?.id ?? ''
    outbox.acknowledge(outbox.lend(1, 1)?.lastSequence ?? 0)
    await outbox.close()
    return id
  }
  const [a, b] = [t.testdir({ a: {}, b: {} }), 'x'].map((path, index) =>
    index === 0 ? `${path}/a` : `${t.testdirName}/b`,
  )
  const first = await idsOf(a ?? '')
  t.not((await idsOf(b ?? '')).slice(0, 16), first.slice(0, 16))
  const second = await idsOf(a ?? '')
  t.equal(second.slice(0, 16), first.slice(0, 16))
  t.equal(Number.parseInt(second.slice(16), 16), 2)
})

t.test('killed behind a transaction: events and the position of their file are there together', async (t) => {
  const directory = t.testdir()
  const child = fileURLToPath(new URL('../../support/append-to-outbox.js', import.meta.url))
  const environment = { ...process.env, POSTURE_FAULT_POINT: 'outbox:appended' }
  const { signal, stderr } = spawnSync(process.execPath, [child, directory], { env: environment, encoding: 'utf8' })
  t.equal(signal, 'SIGKILL', stderr)
  const outbox = new Outbox(directory)
  t.equal(outbox.waiting, 3)
  t.equal(outbox.framesDone('file'), 100)
  await outbox.close()
})

t.test('a batch is bounded in events and bytes', async (t) => {
  const outbox = new Outbox(t.testdir())
  outbox.write({ added: Array.from({ length: 10 }, (_, index) => eventNumber(index)) })
  t.equal(outbox.lend(4, 1e9)?.events.length, 4)
  t.equal(outbox.lend(10, 1)?.events.length, 1, 'one at least')
  outbox.acknowledge(10)
  t.equal(outbox.lend(10, 1e9), undefined)
  await outbox.close()
})

t.test('a directory that cannot be used is one line that names --outbox', async (t) => {
  t.throws(() => new Outbox('/proc/outbox'), { code: 'STORE_UNWRITABLE', message: /^--outbox \/proc\/outbox: / })
})
