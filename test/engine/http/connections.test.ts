import { setTimeout as later } from 'node:timers/promises'
import t from 'tap'
import { provideCertificate } from '../../../engine/http/certificate.ts'
import { EstimatedCounts, ExactCounts } from '../../../engine/http/client-counts.ts'
import {
  type ConnectionLimits,
  Connections,
  connectionCountersOf,
  connectionRows,
  makeConnectionCounters,
  RefusalLimit,
} from '../../../engine/http/connections.ts'
import { FIRST_REQUEST_MS } from '../../../engine/http/node.ts'
import { countLines } from '../../../engine/http/uws-traffic.ts'
import { type WaitingAnswer, WaitingAnswers } from '../../../engine/http/waiting-answers.ts'
import {
  ANSWERS_WAITING_BYTES_MAX,
  ANSWERS_WAITING_PER_CLIENT_BYTES_MAX,
  DISCONNECTED_MS,
  REFUSALS_PER_MINUTE_MAX,
  REFUSED_CLIENTS_MAX,
  REQUESTS_PER_TURN_MAX,
} from '../../../engine/limits.ts'
import { capturedLog } from '../../support/captured-log.ts'
import { IMPLEMENTATIONS, listenOnLoopback } from '../../support/https.ts'
import { type RawClient, rawClient, statusesOf } from '../../support/raw-client.ts'
import { quietLog } from '../../support/store.ts'
import { until } from '../../support/wait.ts'

function connections(limits: ConnectionLimits): Connections {
  return new Connections(limits, new ExactCounts(), undefined, quietLog)
}

t.test("a client's connections are limited, and each client has its own limit", async (t) => {
  const all = connections({ connectionsMax: 100, perClientMax: 2 })
  t.ok(all.open('a'))
  t.ok(all.open('a'))
  t.notOk(all.open('a'))
  all.close()
  t.ok(all.open('b'))
  all.close('a')
  t.ok(all.open('a'), 'when one has closed')
})

t.test('a client that closes its connections is never refused by an estimate', async (t) => {
  let nowMs = 0
  let open = 0
  let asked = 0
  const listed = (): Map<string, number> => {
    asked++
    return new Map([['a', open]])
  }
  const counts = new EstimatedCounts(listed, quietLog, () => nowMs)
  const all = new Connections({ connectionsMax: 1e6, perClientMax: 3 }, counts, undefined, quietLog)
  const connect = (): boolean => {
    open++
    const isAccepted = all.open('a')
    if (!isAccepted) open--
    return isAccepted
  }
  for (let each = 0; each < 50; each++) {
    t.ok(connect(), `${each}`)
    open = 0
    all.close()
  }
  t.equal(asked, 1, 'the kernel is asked once per second')
  nowMs += 1000
  t.same([connect(), connect(), connect()], [true, true, true])
  t.same([connect(), connect()], [true, true], 'accepted until the kernel can be asked again')
  nowMs += 1000
  t.same([connect(), connect()], [false, false])
  t.equal(open, 5)
  open = 0
  nowMs += 1000
  t.ok(connect(), 'when they have closed, the first is accepted')
})

t.test('the connections of all clients together are limited', async (t) => {
  const all = connections({ connectionsMax: 2, perClientMax: 0 })
  t.ok(all.open('a'))
  t.ok(all.open('b'))
  t.notOk(all.open('c'))
  all.close()
  all.close('b')
  t.ok(all.open('c'))
})

t.test('a limit of 0 disables the limits per address', async (t) => {
  const all = connections({ connectionsMax: 10_000, perClientMax: 0 })
  for (let each = 0; each < 2000; each++) t.ok(all.open('a'))
  for (let each = 0; each < 2 * REFUSALS_PER_MINUTE_MAX; each++) t.notOk(all.isPastRefusals('a'))
  t.ok(all.open('a'))
})

t.test('only a client that is rejected too often is disconnected for a while', async (t) => {
  let nowMs = 5
  const limit = new RefusalLimit(() => nowMs)
  for (let each = 0; each < REFUSALS_PER_MINUTE_MAX; each++) t.equal(limit.note('a'), 'no')
  t.notOk(limit.isDisconnected('a'))
  t.equal(limit.note('a'), 'now')
  t.equal(limit.note('a'), 'already')
  t.ok(limit.isDisconnected('a'))
  t.notOk(limit.isDisconnected('b'))
  nowMs += DISCONNECTED_MS - 1
  t.ok(limit.isDisconnected('a'))
  nowMs += 1
  t.notOk(limit.isDisconnected('a'))
  t.equal(limit.note('a'), 'no', 'and its count restarts')
})

t.test('rejections more than a minute old do not count', async (t) => {
  let nowMs = 0
  const limit = new RefusalLimit(() => nowMs)
  for (let each = 0; each < 10 * REFUSALS_PER_MINUTE_MAX; each++) {
    nowMs += 120
    t.equal(limit.note('a'), 'no')
  }
})

t.test('the number of remembered rejected clients is limited', async (t) => {
  const limit = new RefusalLimit(() => 0)
  for (let each = 0; each <= REFUSALS_PER_MINUTE_MAX; each++) limit.note('first')
  t.ok(limit.isDisconnected('first'))
  for (let each = 0; each < REFUSED_CLIENTS_MAX; each++) limit.note(`${each}`)
  t.notOk(limit.isDisconnected('first'))
})

class Answer implements WaitingAnswer {
  isAborted = false
  abort(): void {
    this.isAborted = true
  }
}

t.test('the oldest connection is aborted when a client, or all clients, have too much data waiting', async (t) => {
  const each = ANSWERS_WAITING_PER_CLIENT_BYTES_MAX / 4
  const waiting = new WaitingAnswers(true)
  const add = (client: string): Answer => {
    const answer = new Answer()
    waiting.add(answer, client, each)
    return answer
  }
  const other = add('b')
  const own = [add('a'), add('a'), add('a'), add('a')]
  t.same(own.filter(({ isAborted }) => isAborted).length, 0)
  const [first, second] = own
  waiting.remove(second as Answer)
  own.push(add('a'))
  t.notOk(first?.isAborted)
  own.push(add('a'))
  t.ok(first?.isAborted, 'the oldest of the client')
  t.notOk(other.isAborted, 'and no connection of another client')
  for (let bytes = 0; bytes < ANSWERS_WAITING_BYTES_MAX; bytes += each) add(`c${bytes}`)
  t.ok(other.isAborted, 'the oldest of all')
})

/**
 * proc_pid_net(5): a listener on port 8443, two connections to it, one that is not accepted yet,
 * one to another port, one that is closing, and one from here to port 8443.
 */
const TABLE = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:20FB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0000000000000000 100 0 0 10 0
   1: 0100007F:20FB 0202007F:8D2E 01 00000000:00000000 00:00000000 00000000     0        0 101 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:20FB 0202007F:8D30 08 00000000:00000000 00:00000000 00000000     0        0 102 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:20FB 0202007F:8D32 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0000000000000000 20 4 30 10 -1
   4: 0100007F:20FC 0202007F:8D34 01 00000000:00000000 00:00000000 00000000     0        0 104 1 0000000000000000 20 4 30 10 -1
   5: 0100007F:20FB 0202007F:8D36 06 00000000:00000000 03:00001770 00000000     0        0 0 3 0000000000000000
   6: 0302007F:8D38 0100007F:20FB 01 00000000:00000000 00:00000000 00000000     0        0 106 1 0000000000000000 20 4 30 10 -1
`
const TABLE_6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:20FB B80D0120000000000000000001000000:8D2E 01 00000000:00000000 00:00000000 00000000     0        0 201 1 0000000000000000 20 4 30 10 -1
   1: 0000000000000000FFFF00000100007F:20FB 0000000000000000FFFF00000202007F:8D30 01 00000000:00000000 00:00000000 00000000     0        0 202 1 0000000000000000 20 4 30 10 -1
`

t.test('connections are counted as the kernel lists them', async (t) => {
  const counts = new Map<string, number>()
  countLines(TABLE, 8443, counts)
  t.same([...counts], [['127.0.2.2', 2]])
  countLines(TABLE_6, 8443, counts)
  t.same(Object.fromEntries(counts), { '127.0.2.2': 3, '2001:db8::/64': 1 })
})

const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

for (const tls of [false, true]) {
  t.test(`idle connections${tls ? ' over TLS' : ''} keep no other client out`, async (t) => {
    const memory = makeConnectionCounters(1)
    const { log, entries } = capturedLog()
    const listener = await listenOnLoopback(t, 'node', {
      ...(tls && { tls: await provideCertificate(t.testdir(), undefined) }),
      limits: { connectionsMax: 20, perClientMax: 9 },
      connectionCounters: connectionCountersOf(memory),
      handler: (_, response) => response.send({ status: 200, body: 'here' }),
      log,
    })
    const ask = async (from: string) => {
      const client = rawClient(listener.port, { tls, from })
      client.socket.write(request)
      await until('an answer', () => client.isClosed() || statusesOf(client.text()).length === 1)
      return client
    }
    const idle: RawClient[] = []
    for (let each = 0; each < 17; each++) idle.push(await ask(`127.0.0.${2 + (each % 2)}`))
    const silent = rawClient(listener.port, { tls, from: '127.0.0.3' })
    await until('the silent one is open', () => connectionCountersOf(memory)[0] === 18)
    await later(FIRST_REQUEST_MS)
    idle.push(await ask('127.0.0.2'))
    await until('the oldest of the address is closed', () => idle[0]?.isClosed())
    const others = []
    for (let each = 0; each < 7; each++) others.push(await ask('127.0.0.4'))
    t.same(
      others.map(({ text, isClosed }) => [statusesOf(text()), isClosed()]),
      others.map(() => [[200], false]),
    )
    await silent.closed
    t.pass('the one that sent no request is closed before older ones that did')
    // One fewer if the silent one has reached its time limit before.
    const closed = (): number => idle.filter(({ isClosed }) => isClosed()).length
    await until('the others of these clients are closed', () => closed() === 5 || closed() === 4)
    const rows = Object.fromEntries(connectionRows({ test: memory }).map(([name, , , value]) => [name, value]))
    t.match(rows, { posture_http_connections_closed_idle_total: { test: /^[56]$/ } })
    const clients = { '127.0.0.2': 9 }
    const expected = { level: 40, closed: 1, clients }
    t.match(entries, [
      { ...expected, limit: 'address', max: 9 },
      { ...expected, limit: 'total', max: 20 },
    ])
    t.equal(entries.length, 2, 'once a minute for each limit')
    for (const { socket } of [...idle, ...others]) socket.destroy()
  })
}

t.test('a connection that may still send its first request is not closed for another one', async (t) => {
  const listener = await listenOnLoopback(t, 'node', {
    limits: { connectionsMax: 100, perClientMax: 3 },
    handler: (_, response) => response.send({ status: 200, body: 'here' }),
  })
  const connected = () => {
    const client = rawClient(listener.port, {})
    t.teardown(() => client.socket.destroy())
    return client
  }
  const ask = async (client: RawClient) => {
    client.socket.write(request)
    await until('an answer', () => client.isClosed() || statusesOf(client.text()).length > 0)
    return statusesOf(client.text())
  }
  const idle = [connected(), connected(), connected()]
  for (const client of idle) t.same(await ask(client), [200])
  const slow = connected()
  await until('the first idle one is closed', () => idle[0]?.isClosed())
  connected()
  await until('the next idle one is closed', () => idle[1]?.isClosed())
  t.same(await ask(slow), [200])
})

t.test('the total limit closes an idle connection of another client where the largest has none', async (t) => {
  const held: (() => void)[] = []
  const listener = await listenOnLoopback(t, 'node', {
    limits: { connectionsMax: 5, perClientMax: 4 },
    handler: (asked, response) => {
      const send = () => response.send({ status: 200, body: 'here' })
      if (asked.path === '/held') held.push(send)
      else send()
    },
  })
  const ask = (from: string, path: string) => {
    const client = rawClient(listener.port, { from })
    t.teardown(() => client.socket.destroy())
    client.socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    return client
  }
  for (let each = 0; each < 3; each++) ask('127.0.0.2', '/held')
  await until('the requests are in progress', () => held.length === 3)
  const idle = [ask('127.0.0.3', '/'), ask('127.0.0.3', '/')]
  await until('answers', () => idle.every(({ text }) => statusesOf(text()).length === 1))
  const other = ask('127.0.0.4', '/')
  await until('an answer', () => other.isClosed() || statusesOf(other.text()).length === 1)
  t.same(statusesOf(other.text()), [200])
  for (const send of held) send()
})

/** Number of pipelined requests. */
const FEW = 50

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}: connections of one address are limited and counted`, async (t) => {
    const memory = makeConnectionCounters(1)
    const listener = await listenOnLoopback(t, implementation, {
      limits: { connectionsMax: 100, perClientMax: 3 },
      connectionCounters: connectionCountersOf(memory),
      handler: (_, response) => response.send({ status: 200, body: 'here' }),
    })
    const values = (): Record<string, unknown> =>
      Object.fromEntries(connectionRows({ test: memory }).map(([name, , , value]) => [name, value]))
    const clients = Array.from({ length: 5 }, () => {
      const client = rawClient(listener.port)
      client.socket.write(request)
      return client
    })
    await until('every connection is answered or closed', () =>
      clients.every((client) => client.isClosed() || statusesOf(client.text()).length === 1),
    )
    t.equal(clients.filter(({ isClosed }) => isClosed()).length, 2)
    t.match(values(), { posture_http_connections: { test: 3 }, posture_http_connections_total: { test: 5 } })
    for (const { socket } of clients) socket.destroy()
    await until('all have closed', () => connectionCountersOf(memory)[0] === 0)
    // uWebSockets.js asks the kernel once a second for closed connections.
    await until('the client may connect again', async () => {
      const client = rawClient(listener.port)
      client.socket.write(request)
      await until('an answer', () => client.isClosed() || client.bytes() > 0)
      client.socket.destroy()
      return client.bytes() > 0
    })
  })

  t.test(`over ${implementation}: a client that is rejected too often is disconnected`, async (t) => {
    const memory = makeConnectionCounters(1)
    const counters = connectionCountersOf(memory)
    let answers = 0
    const listener = await listenOnLoopback(t, implementation, {
      limits: { connectionsMax: 100, perClientMax: 50 },
      connectionCounters: counters,
      handler: ({ path }, response) => {
        const isRefusal = path === '/refused'
        response.send({ status: isRefusal ? 401 : 200, body: 'text', isRefusal })
      },
      onAnswer: () => answers++,
    })
    const good = rawClient(listener.port)
    good.socket.write(request)
    await until('an answer', () => good.bytes() > 0)
    const bad = rawClient(listener.port)
    const refused = request.replace('/', '/refused')
    for (let sent = 0; sent < REFUSALS_PER_MINUTE_MAX; sent += FEW) {
      const before = answers
      bad.socket.write(refused.repeat(FEW))
      await until('the answers', () => answers === before + FEW)
    }
    t.notOk(bad.isClosed())
    bad.socket.write(refused)
    await bad.closed
    t.equal(answers, REFUSALS_PER_MINUTE_MAX + 1)
    const again = rawClient(listener.port)
    again.socket.write(request)
    await again.closed
    t.equal(again.bytes(), 0, 'new connections of its address are closed')
    good.socket.write(request)
    await until('an answer', () => statusesOf(good.text()).length === 2)
    t.pass('a connection with a valid key continues')
    good.socket.destroy()
  })

  t.test(`over ${implementation}: too many pipelined requests close the connection`, async (t) => {
    let calls = 0
    const listener = await listenOnLoopback(t, implementation, {
      handler: (_, response) => {
        calls++
        response.send({ status: 200, body: 'text' })
      },
    })
    const few = rawClient(listener.port)
    few.socket.write(request.repeat(20))
    await until('20 answers', () => statusesOf(few.text()).length === 20)
    few.socket.destroy()
    calls = 0
    const many = rawClient(listener.port)
    many.socket.write(request.repeat(1500))
    await many.closed
    t.ok(calls <= REQUESTS_PER_TURN_MAX + 1, `${calls} of 1500 were handled`)
  })
}
