import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { coverageReportToJson } from '../../../engine/event/coverage-report.ts'
import type { BodyPace } from '../../../engine/http/port.ts'
import { CoverageAcceptor } from '../../../engine/ingest/accept-coverage.ts'
import { BodyMemory } from '../../../engine/ingest/body-memory.ts'
import { COVERAGE_PATH, coverageHandler } from '../../../engine/ingest/https-coverage.ts'
import { SourceTable } from '../../../engine/ingest/sources.ts'
import { COVERAGE_BYTES_MAX } from '../../../engine/limits.ts'
import { report } from '../../support/coverage.ts'
import { type Ask, IMPLEMENTATIONS, serve } from '../../support/https.ts'
import { makeOrganization, NOON, openStore, quietLog } from '../../support/store.ts'
import { until } from '../../support/wait.ts'

async function startIngest(t: Test, implementation: (typeof IMPLEMENTATIONS)[number], pace?: BodyPace) {
  const opened = openStore(t)
  const { store, clock, directory } = opened
  const organization = makeOrganization(opened, 'Acme')
  const tokens = new Administration(store, clock).tokens
  const { raw, record } = tokens.generate(organization, 'test')
  const acceptor = new CoverageAcceptor(store, clock, quietLog)
  const memory = new BodyMemory()
  const sources = new SourceTable()
  const server = await serve(t, implementation, directory, coverageHandler(store, acceptor, memory, sources, pace))
  const good = { authorization: `Bearer ${raw}`, 'content-type': 'application/json; charset=utf-8' }
  const send = (words: Parameters<typeof report>[0], headers: Record<string, string> = good) =>
    server.ask(COVERAGE_PATH, { method: 'POST', headers, body: coverageReportToJson(report(words)) })
  const sum = () => store.environment.read(() => store.coverage.sumSince(organization.id, 0))
  const parts = { ...opened, organization, tokens, record, acceptor, memory, sources }
  return { ...server, ...parts, good, send, sum }
}

type Case = Ask & { readonly name: string; readonly status: number; readonly error: RegExp }

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}`, async (t) => {
    t.test('a report is stored before it is answered; the same again is no other', async (t) => {
      const { send, sum, acceptor } = await startIngest(t, implementation)
      const words = { madeMs: NOON, counters: { packets: 12, names: 3 } }
      for (let times = 0; times < 2; times++) {
        t.match(await send(words), { status: 200, body: { accepted: true } })
        t.match(sum(), { sensors: 1, days: 1, counters: { packets: 12, names: 3 } })
      }
      t.match(acceptor.counts, { accepted: 1, repeated: 1 })
    })

    t.test('what is refused, and how', async (t) => {
      const { ask, good, send, sum, acceptor, memory, sources } = await startIngest(t, implementation)
      const body = coverageReportToJson(report({ madeMs: NOON, counters: { packets: 12 } }))
      const rows: Case[] = [
        { name: 'another method', method: 'GET', headers: good, status: 405, error: /POST/ },
        {
          name: 'no token',
          headers: { ...good, authorization: '' },
          body,
          status: 401,
          error: /^Invalid monitoring token$/,
        },
        {
          name: 'an unknown token',
          headers: { ...good, authorization: `Bearer svc_mt_${'0'.repeat(48)}` },
          body,
          status: 401,
          error: /^Invalid/,
        },
        {
          name: 'no type',
          headers: { authorization: good.authorization },
          body,
          status: 415,
          error: /application\/json/,
        },
        {
          name: 'the type of batches',
          headers: { ...good, 'content-type': 'application/msgpack' },
          body,
          status: 415,
          error: /application\/json/,
        },
        {
          name: 'gzip',
          headers: { ...good, 'content-encoding': 'gzip' },
          body,
          status: 415,
          error: /no Content-Encoding/,
        },
        { name: 'an empty body', headers: good, body: '', status: 400, error: /^Malformed report: expected JSON/ },
        { name: 'a batch', headers: good, body: '{"events":[]}', status: 400, error: /^Malformed report: coverage: / },
        {
          name: 'a negative counter',
          headers: good,
          body: body.replace('"packets":12', '"packets":-12'),
          status: 400,
          error: /^Malformed report: coverage\.counters\.packets: /,
        },
        {
          name: 'a report that is too long',
          headers: good,
          body: body + ' '.repeat(COVERAGE_BYTES_MAX),
          status: 413,
          error: /at most 16384 bytes/,
        },
      ]
      for (const { name, method = 'POST', headers = {}, body: sent, status, error } of rows) {
        const answer = await ask(COVERAGE_PATH, { method, headers, ...(sent === undefined ? {} : { body: sent }) })
        t.match(answer, { status, body: { error } }, name)
      }
      t.match(sum(), { sensors: 0, days: 0 })
      t.match(acceptor.counts, { accepted: 0, malformed: 3, unauthorised: 2 })
      t.equal(sources.received.https, 2, 'strangers are told with those of the events')
      t.equal(memory.held, 0)
      t.match(await send({ madeMs: NOON }), { status: 200 }, 'it serves on')
    })

    t.test('one report in ten seconds of an instance: more are told to come later, and change nothing', async (t) => {
      const { send, sum, clock } = await startIngest(t, implementation)
      await send({ madeMs: NOON, counters: { packets: 1 } })
      clock.add(4000)
      const early = await send({ madeMs: NOON + 4000, counters: { packets: 2 } })
      t.match(early, { status: 429, headers: { 'retry-after': '6' }, body: { error: /^Try again later: / } })
      t.equal(sum().counters.packets, 1)
      t.match(await send({ madeMs: NOON + 4000, ended: true, counters: { packets: 3 } }), { status: 200 }, 'the last')
      clock.add(10_000)
      t.match(await send({ madeMs: NOON + 14_000, counters: { packets: 4 } }), { status: 200 })
      t.equal(sum().counters.packets, 4)
    })

    t.test('a service that cannot store says so, and takes the report later', async (t) => {
      const { send, sum, store, clock, acceptor } = await startIngest(t, implementation)
      clock.set(1000)
      t.match(await send({ madeMs: NOON }), { status: 503, headers: { 'retry-after': '5' }, body: { error: /clock/ } })
      clock.set(NOON)
      const { environment } = store
      const write = environment.write.bind(environment)
      environment.write = () => {
        throw new Error('no')
      }
      t.match(await send({ madeMs: NOON }), { status: 503, body: { error: /cannot be written/ } })
      environment.write = write
      t.match(await send({ madeMs: NOON }), { status: 200 })
      t.match(sum(), { sensors: 1 })
      t.match(acceptor.counts, { deferred: 2, accepted: 1 })
    })

    t.test('a revoked token, a body that does not come, and a sender that goes away', async (t) => {
      const pace = { graceMs: 200, bytesPerSecondMin: 10_000 }
      const { send, tokens, organization, record, listener, good, memory } = await startIngest(t, implementation, pace)
      const lines = Object.entries(good).map(([name, value]) => `${name}: ${value}\r\n`)
      const begin = async () => {
        const socket = connect({ host: '127.0.0.1', port: listener.port, rejectUnauthorized: false })
        socket.on('error', () => {})
        t.teardown(() => socket.destroy())
        await new Promise((resolve) => socket.once('secureConnect', resolve))
        socket.write(`POST ${COVERAGE_PATH} HTTP/1.1\r\nhost: x\r\n${lines.join('')}content-length: 900\r\n\r\n{`)
        return socket
      }
      const slow = await begin()
      t.match(String(await new Promise((resolve) => slow.once('data', resolve))), /^HTTP\/1\.1 408 /)
      const gone = await begin()
      await until('the body has room', () => memory.held > 0)
      gone.destroy()
      await until('its room is given back', () => memory.held === 0)
      t.equal(memory.held, 0)
      t.match(await send({ madeMs: NOON }), { status: 200 })
      tokens.revoke(organization, record.visible)
      t.match(await send({ madeMs: NOON + 60_000 }), { status: 401 })
    })
  })
}
