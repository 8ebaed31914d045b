import { spawnSync } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { connect } from 'node:tls'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import type { BodyPace } from '../../../engine/http/port.ts'
import { EventAcceptor } from '../../../engine/ingest/accept.ts'
import { BodyMemory } from '../../../engine/ingest/body-memory.ts'
import { EVENTS_PATH, eventsHandler, REGISTRY_PATH } from '../../../engine/ingest/https-batches.ts'
import type { BatchCounters } from '../../../engine/ingest/request-body.ts'
import { coverageReportToJson } from '../../../engine/kernel/event/coverage-report.ts'
import { eventToJson, packBatch } from '../../../engine/kernel/event/event.ts'
import { BATCH_BYTES_MAX, BATCH_EVENTS_MAX } from '../../../engine/limits.ts'
import { report } from '../../support/coverage.ts'
import { type Ask, IMPLEMENTATIONS, serve } from '../../support/https.ts'
import { BUILT_IN_VERSION, laterVersion, makeUpdate, ROOT } from '../../support/registry-updates.ts'
import { makeOrganization, NOON, openStore, quietLog, Sender } from '../../support/store.ts'
import { until } from '../../support/wait.ts'

async function startIngest(
  t: Test,
  implementation: (typeof IMPLEMENTATIONS)[number],
  memory = new BodyMemory(),
  pace?: BodyPace,
) {
  const opened = openStore(t)
  const organization = makeOrganization(opened, 'Acme')
  const { raw, record } = new Administration(opened.store, opened.clock).tokens.generate(organization, 'test')
  const counters: BatchCounters = { batches: 0, unauthorized: 0, malformed: 0, overloaded: 0 }
  const acceptor = new EventAcceptor(opened.store, opened.clock, quietLog, () => {})
  const server = await serve(
    t,
    implementation,
    opened.directory,
    eventsHandler(opened.store, acceptor, counters, { memory, ...(pace === undefined ? {} : { pace }) }),
  )
  return { ...server, opened, organization, token: raw, record, counters, sender: new Sender() }
}

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}`, async (t) => {
    t.test('a batch whose organization is removed while it is stored is answered as its next one', async (t) => {
      const { ask, token, opened, organization, counters, sender } = await startIngest(t, implementation)
      const remove = new Administration(opened.store, opened.clock).organizations
      let isRemoved = false
      const { write } = opened.store.environment
      Object.assign(opened.store.environment, {
        write: (work: () => unknown) => {
          if (!isRemoved) {
            isRemoved = true
            remove.remove(organization, () => {})
          }
          return write.call(opened.store.environment, work)
        },
      })
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/msgpack' }
      const body = packBatch([sender.event('claude.ai', NOON)])
      for (const which of ['first', 'next'])
        t.equal((await ask(EVENTS_PATH, { method: 'POST', headers, body })).status, 401, which)
      t.match(counters, { batches: 0, unauthorized: 2 })
    })

    t.test('msgpack and JSON, plain and gzip, are stored before they are answered', async (t) => {
      const { ask, token, opened, organization, sender } = await startIngest(t, implementation)
      const json = { authorization: `Bearer ${token}`, 'content-type': 'application/json; charset=utf-8' }
      const msgpack = { authorization: `bearer  ${token}`, 'content-type': 'application/msgpack' }
      const events = () => [sender.event('claude.ai', NOON), sender.event('no name', NOON)]
      const bodies: Ask[] = [
        { headers: json, body: JSON.stringify({ events: events().map(eventToJson) }) },
        {
          headers: { ...json, 'content-encoding': 'gzip' },
          body: gzipSync(JSON.stringify({ events: events().map(eventToJson) })),
        },
        { headers: msgpack, body: packBatch(events()) },
        { headers: { ...msgpack, 'content-encoding': 'gzip' }, body: gzipSync(packBatch(events())) },
        {
          headers: { ...msgpack, 'content-encoding': 'zstd' },
          body: spawnSync('zstd', ['-q', '-c'], { input: packBatch(events()) }).stdout,
        },
      ]
      for (const [index, options] of bodies.entries()) {
        for (const accepted of [1, 0]) {
          const answer = await ask(EVENTS_PATH, { method: 'POST', ...options })
          t.equal(answer.status, 200)
          t.match(answer.body, {
            accepted,
            duplicates: 1 - accepted,
            outside_dedup_window: 0,
            rejected: [{ index: 1, error: /no name/ }],
          })
          t.equal(opened.store.buffer.count(organization.id), index + 1)
        }
      }
    })

    t.test('an empty batch is answered without storing anything, so that a collector can test its token', async (t) => {
      const { ask, token, opened, organization } = await startIngest(t, implementation)
      const bodies: readonly (readonly [contentType: string, body: Uint8Array | string])[] = [
        ['application/json', '{"events":[]}'],
        ['application/msgpack', packBatch([])],
      ]
      for (const [contentType, body] of bodies) {
        const headers = { 'content-type': contentType }
        const authorization = `Bearer ${token}`
        const good = await ask(EVENTS_PATH, { method: 'POST', headers: { ...headers, authorization }, body })
        t.match(good, { status: 200, body: { accepted: 0, duplicates: 0, rejected: [] } }, contentType)
        t.equal((await ask(EVENTS_PATH, { method: 'POST', headers, body })).status, 401, 'only with a token')
      }
      t.equal(opened.store.buffer.count(organization.id), 0)
    })

    t.test('collectors hear the version of the registry, and download the installed release', async (t) => {
      const { ask, token, opened } = await startIngest(t, implementation)
      const { store, clock } = opened
      const authorization = `Bearer ${token}`
      const announced = async () => {
        const headers = { authorization, 'content-type': 'application/json' }
        const { body } = await ask(EVENTS_PATH, { method: 'POST', headers, body: '{"events":[]}' })
        return (body as { registry: string }).registry
      }
      const download = (headers: Record<string, string> = {}) => {
        return ask(REGISTRY_PATH, { headers: { authorization, ...headers } })
      }
      t.equal(await announced(), BUILT_IN_VERSION)
      t.match(await download(), { status: 200, body: { registry: BUILT_IN_VERSION, built_in: true } })

      const update = makeUpdate(laterVersion(1))
      clock.set(Date.now())
      new Administration(store, clock).registryUpdates.update(update, [createPublicKey(ROOT)])
      t.equal(await announced(), laterVersion(1))
      const answer = await download()
      t.match(answer, { status: 200, headers: { 'content-type': 'application/octet-stream' } })
      t.ok(answer.bytes.equals(update), 'the file as it was signed')
      const tag = String(answer.headers['etag'])
      const same = await download({ 'if-none-match': tag })
      t.match(same, { status: 304, headers: { etag: tag }, text: '' })
      t.match(await download({ 'if-none-match': '"other"' }), { status: 200 })
      t.match(await ask(REGISTRY_PATH), { status: 401 })
      t.match(await download({ authorization: 'Bearer svc_mt_0' }), { status: 401 })
      t.match(await ask(REGISTRY_PATH, { method: 'POST', headers: { authorization }, body: '' }), { status: 405 })
    })

    t.test('a coverage report is sent with events or alone, and has its own result', async (t) => {
      const { ask, token, opened, organization, sender } = await startIngest(t, implementation)
      const { store, clock } = opened
      const authorization = `Bearer ${token}`
      const send = (body: Uint8Array | string) => {
        const headers = {
          authorization,
          'content-type': `application/${typeof body === 'string' ? 'json' : 'msgpack'}`,
        }
        return ask(EVENTS_PATH, { method: 'POST', headers, body })
      }
      const sum = () => store.environment.read(() => store.coverage.sumSince(organization.id, 0).counters.packets)
      const made = (packets: number) => report({ madeMs: clock.nowMs(), counters: { packets } })
      const event = () => sender.event('claude.ai', NOON)
      const json = (coverage: unknown) => JSON.stringify({ events: [eventToJson(event())], coverage })
      const taken = { accepted: true }
      const first = packBatch([], made(1))
      for (const times of ['once', 'again']) {
        t.match(await send(first), { status: 200, body: { accepted: 0, coverage: taken } }, times)
        t.equal(sum(), 1)
      }
      const soon = { accepted: false, error: 'coverage: reports are sent too often' }
      clock.add(4000)
      t.match(await send(packBatch([event()], made(2))), { status: 200, body: { accepted: 1, coverage: soon } })
      t.equal(sum(), 1)
      clock.add(6000)
      t.match(await send(json(coverageReportToJson(made(3)))), { status: 200, body: { accepted: 1, coverage: taken } })
      t.equal(sum(), 3)
      const wrong = { accepted: false, error: /^coverage\.counters\.packets: / }
      const negative = { ...coverageReportToJson(made(3)), counters: { ...made(3).counters, packets: -3 } }
      t.match(await send(json(negative)), { status: 200, body: { accepted: 1, coverage: wrong } })
      const none = await send(json(undefined))
      t.match(none, { status: 200, body: { accepted: 1 } })
      t.notOk('coverage' in (none.body as object))
      t.equal(store.buffer.count(organization.id), 4)
      t.match(await send(JSON.stringify({ coverage: coverageReportToJson(made(9)) })), { status: 400 })
      t.match(await ask('/ingest/v1/coverage', { method: 'POST', headers: { authorization }, body: '{}' }), {
        status: 404,
      })
    })

    t.test('invalid requests are rejected with the right error', async (t) => {
      const { ask, token, opened, organization, counters, sender } = await startIngest(t, implementation)
      const good = { authorization: `Bearer ${token}`, 'content-type': 'application/msgpack' }
      const body = packBatch([sender.event('claude.ai', NOON)])
      const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '))
      const many = packBatch(Array.from({ length: BATCH_EVENTS_MAX + 1 }, () => sender.event('claude.ai', NOON)))
      const withoutType = { authorization: good.authorization }
      const gzip = { 'content-encoding': 'gzip' }
      // What differs from a good request.
      const rows: Readonly<Record<string, readonly [Ask & { path?: string }, status: number, error: RegExp]>> = {
        'another path': [{ path: '/' }, 404, /POST \/ingest\/v1\/events/],
        'another method': [{ method: 'PUT' }, 405, /POST/],
        'no token': [{ headers: { ...good, authorization: '' } }, 401, /^Invalid monitoring token$/],
        'an unknown token': [
          { headers: { ...good, authorization: `Bearer svc_mt_${'0'.repeat(48)}` } },
          401,
          /^Invalid/,
        ],
        'a token of another scheme': [{ headers: { ...good, authorization: `Basic ${token}` } }, 401, /^Invalid/],
        'a token with trailing text': [{ headers: { ...good, authorization: `Bearer ${token} x` } }, 401, /^Invalid/],
        'no type': [{ headers: withoutType }, 415, /application\/msgpack/],
        'another type': [{ headers: { ...good, 'content-type': 'constructor' } }, 415, /application\/json/],
        'another encoding': [{ headers: { ...good, 'content-encoding': 'br' } }, 415, /gzip/],
        'broken gzip': [{ headers: { ...good, ...gzip } }, 400, /compressed body is damaged/],
        'a decompression bomb': [
          { headers: { ...good, 'content-type': 'application/json', ...gzip }, body: bomb },
          413,
          /at most 10000 events and 8388608 bytes/,
        ],
        'invalid msgpack': [{ body: 'hello' }, 400, /^Malformed batch: /],
        'an empty body': [{ body: '' }, 400, /^Malformed batch: /],
        'too many events': [{ body: many }, 413, /at most 10000 events/],
      }
      for (const [name, [{ path = EVENTS_PATH, ...asked }, status, error]] of Object.entries(rows)) {
        const answer = await ask(path, { method: 'POST', headers: good, body, ...asked })
        t.match(answer, { status, body: { error } }, name)
      }
      t.equal(opened.store.buffer.count(organization.id), 0)
      t.match(counters, { unauthorized: 4, malformed: 5 })
      t.equal((await ask(EVENTS_PATH, { method: 'POST', headers: good, body })).status, 200, 'it serves on')
    })

    t.test('a body over the limit is rejected, announced or not', async (t) => {
      const { ask, token } = await startIngest(t, implementation)
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/msgpack' }
      const outcome = await ask(EVENTS_PATH, { method: 'POST', headers, body: Buffer.alloc(BATCH_BYTES_MAX + 1) }).then(
        ({ status }) => status,
        // The server may close before it has received the whole body.
        (error: NodeJS.ErrnoException) => error.code,
      )
      t.ok([413, 'EPIPE', 'ECONNRESET', 'UND_ERR_SOCKET'].includes(outcome as string | number), String(outcome))
    })

    t.test('bodies reserve memory; beyond the limit, a body is not read, and must be retried', async (t) => {
      const memory = new BodyMemory(700_000)
      const { ask, token, opened, organization, listener, counters, sender } = await startIngest(
        t,
        implementation,
        memory,
      )
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/msgpack' }
      const big = packBatch(Array.from({ length: 9000 }, () => sender.event('claude.ai', NOON)))
      const socket = connect({ host: '127.0.0.1', port: listener.port, rejectUnauthorized: false })
      socket.on('error', () => {})
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      await new Promise((resolve) => socket.once('secureConnect', resolve))
      socket.write(`POST ${EVENTS_PATH} HTTP/1.1\r\nhost: x\r\n${lines.join('')}content-length: ${big.length}\r\n\r\n`)
      await until('the body has room', () => memory.held > 0)
      const other = packBatch(Array.from({ length: 9000 }, () => sender.event('claude.ai', NOON)))
      const refused = await ask(EVENTS_PATH, { method: 'POST', headers, body: other })
      t.match(refused, { status: 503, headers: { 'retry-after': '5' }, body: { error: /^Try again later: / } })
      t.match(counters, { overloaded: 1, batches: 0 })
      t.equal(opened.store.buffer.count(organization.id), 0)
      const answered = new Promise((resolve) => socket.once('data', resolve))
      socket.write(big)
      t.match(String(await answered), /^HTTP\/1\.1 200 /, 'the one that was first is taken')
      t.match(await ask(EVENTS_PATH, { method: 'POST', headers, body: other }), { status: 200 }, 'then the other')
      socket.destroy()
      t.equal(memory.held, 0)
    })

    t.test('a body counts with its decompressed size, and an aborted one frees its memory', async (t) => {
      const memory = new BodyMemory(100_000)
      const { ask, token, counters, listener, sender } = await startIngest(t, implementation, memory)
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/msgpack',
        'content-encoding': 'gzip',
      }
      const events = Array.from({ length: 2000 }, () => sender.event('claude.ai', NOON))
      const body = gzipSync(packBatch(events))
      t.ok(body.length < 100_000)
      t.match(await ask(EVENTS_PATH, { method: 'POST', headers, body }), { status: 503 })
      t.equal(counters.overloaded, 1)
      const fewer = gzipSync(packBatch(events.slice(0, 1000)))
      t.match(await ask(EVENTS_PATH, { method: 'POST', headers, body: fewer }), { status: 200 })
      const socket = connect({ host: '127.0.0.1', port: listener.port, rejectUnauthorized: false })
      socket.on('error', () => {})
      await new Promise((resolve) => socket.once('secureConnect', resolve))
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      socket.write(`POST ${EVENTS_PATH} HTTP/1.1\r\nhost: x\r\n${lines.join('')}content-length: 90000\r\n\r\n`)
      await until('the body has room', () => memory.held > 0)
      socket.destroy()
      await until('its room is given back', () => memory.held === 0)
      t.equal(memory.held, 0)
    })

    t.test('during a long commit, memory stays within its limit, and each sender gets an answer', async (t) => {
      const bytesMax = 1_200_000
      const memory = new BodyMemory(bytesMax)
      const { ask, token, opened, organization, counters, sender } = await startIngest(t, implementation, memory)
      const { environment } = opened.store
      const write = environment.write.bind(environment)
      environment.write = (work) => {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
        return write(work)
      }
      let most = 0
      const reserve = memory.reserve.bind(memory)
      memory.reserve = (bytes) => {
        const taken = reserve(bytes)
        most = Math.max(most, memory.held)
        return taken
      }
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/msgpack' }
      const bodies = Array.from({ length: 30 }, () =>
        packBatch(Array.from({ length: 10_000 }, () => sender.event('claude.ai', NOON))),
      )
      const answers = await Promise.all(
        bodies.map(async (body) => (await ask(EVENTS_PATH, { method: 'POST', headers, body })).status),
      )
      const taken = answers.filter((status) => status === 200).length
      t.equal(taken + answers.filter((status) => status === 503).length, bodies.length)
      // On a slow machine, bodies may arrive one after the other.
      t.ok(taken > 0, `${taken} taken, ${counters.overloaded} refused by overload`)
      t.equal(opened.store.buffer.count(organization.id), taken * 10_000)
      t.ok(most <= bytesMax && most > 0, `${most} bytes at most`)
      t.equal(memory.held, 0)
    })

    t.test('announced bodies that never arrive block no other sender, and are closed', async (t) => {
      const memory = new BodyMemory()
      // Long enough for the other clients to connect, even on a loaded machine.
      const pace = { graceMs: 4000, bytesPerSecondMin: 10_000 }
      const { ask, token, opened, listener, sender } = await startIngest(t, implementation, memory, pace)
      const other = makeOrganization(opened, 'Other')
      const others = new Administration(opened.store, opened.clock).tokens.generate(other, 'others').raw
      const fields = (authorization: string) => ({ authorization, 'content-type': 'application/msgpack' })
      const answers: Promise<string>[] = []
      for (let index = 0; index < 20; index++) {
        const socket = connect({ host: '127.0.0.1', port: listener.port, rejectUnauthorized: false })
        socket.on('error', () => {})
        t.teardown(() => socket.destroy())
        let text = ''
        socket.on('data', (bytes) => {
          text += String(bytes)
        })
        const lines = Object.entries(fields(`Bearer ${token}`)).map(([name, value]) => `${name}: ${value}\r\n`)
        const length = `content-length: ${BATCH_BYTES_MAX}\r\n`
        socket.write(`POST ${EVENTS_PATH} HTTP/1.1\r\nhost: x\r\n${lines.join('')}${length}\r\n\x92`)
        answers.push(new Promise((resolve) => socket.once('close', () => resolve(text))))
        if (index < 4) await until('the body has room', () => memory.held >= (index + 1) * BATCH_BYTES_MAX)
      }
      const body = packBatch([sender.event('claude.ai', NOON)])
      t.match(await ask(EVENTS_PATH, { method: 'POST', headers: fields(`Bearer ${others}`), body }), { status: 200 })
      const first = await Promise.all(answers.slice(0, 4))
      t.ok(first.every((text) => /^HTTP\/1\.1 408 /.test(text) && /connection: close/i.test(text)))
      await until('their room is given back', () => memory.held === 0)
      t.match(await ask(EVENTS_PATH, { method: 'POST', headers: fields(`Bearer ${token}`), body }), { status: 200 })
    })

    t.test('a revoked token and an aborted request are handled', async (t) => {
      const memory = new BodyMemory()
      const started = await startIngest(t, implementation, memory)
      const { ask, token, record, opened, organization, listener, sender } = started
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/msgpack' }
      const body = packBatch([sender.event('claude.ai', NOON)])
      const socket = connect({ host: '127.0.0.1', port: listener.port, rejectUnauthorized: false })
      socket.on('error', () => {})
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      await new Promise((resolve) => socket.once('secureConnect', resolve))
      socket.write(`POST ${EVENTS_PATH} HTTP/1.1\r\nhost: x\r\n${lines.join('')}content-length: ${body.length}\r\n\r\n`)
      socket.write(body.subarray(0, 10))
      await until('the server reads the body', () => memory.held > 0)
      socket.destroy()
      await until('the request is aborted', () => memory.held === 0)
      t.equal((await ask(EVENTS_PATH, { method: 'POST', headers, body })).status, 200)
      t.equal(opened.store.buffer.count(organization.id), 1)
      new Administration(opened.store, opened.clock).tokens.revoke(organization, record.visible)
      t.equal((await ask(EVENTS_PATH, { method: 'POST', headers, body })).status, 401)
    })
  })
}
