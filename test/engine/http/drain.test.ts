import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { connect } from 'node:tls'
import t from 'tap'
import { provideCertificate } from '../../../engine/http/certificate.ts'
import { claimPort, listenHttp } from '../../../engine/http/listen.ts'
import { IMPLEMENTATIONS } from '../../support/https.ts'
import { quietLog } from '../../support/store.ts'

const CLIENTS = 100
/** Columns of connections.ts. */
const OPEN = 0
const ACCEPTED = 1

// A thread that exits with an open connection of uWebSockets.js ends the process with SIGABRT.
const ROWS = IMPLEMENTATIONS.flatMap((over) => [0, 1, 2, 3, 5, 8].map((turns) => ({ over, turns })))
for (const { over, turns } of ROWS) {
  t.test(`over ${over}: a drained listener has no connection, even in a handshake, ${turns} turns old`, async (t) => {
    const { keyFile, certificateFile } = await provideCertificate(t.testdir(), undefined)
    const connectionCounters = new Float64Array(16)
    let requests = 0
    const listener = await listenHttp(over, {
      address: '127.0.0.1',
      port: 0,
      tls: { keyFile, certificateFile },
      connectionCounters,
      handler: (_request, response) => {
        requests++
        response.send({ status: 200, body: 'answer' })
      },
      log: quietLog,
    })
    for (let client = 0; client < CLIENTS; client++) {
      const socket = connect({ host: '127.0.0.1', port: listener.port, rejectUnauthorized: false })
      socket.on('error', () => {})
      socket.once('secureConnect', () => socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'))
      t.teardown(() => socket.destroy())
    }
    // All handshakes come at the same time: more than the library processes in one turn.
    while ((connectionCounters[ACCEPTED] ?? 0) < CLIENTS) await turn()
    for (let each = 0; each < turns; each++) await turn()
    await listener.drain(60_000)
    const answered = requests
    // node:http reports closed connections one turn later.
    await turn()
    t.equal(connectionCounters[OPEN], 0)
    for (let each = 0; each < CLIENTS; each++) await turn()
    t.equal(requests, answered, 'no request is answered after the drain')
  })
}

for (const over of IMPLEMENTATIONS) {
  t.test(`over ${over}: a listener that drains during a reload no longer listens`, async (t) => {
    const { keyFile, certificateFile } = await provideCertificate(t.testdir(), undefined)
    const tls = { keyFile, certificateFile }
    // The library shares only a port that it was given.
    const port = await claimPort('--port', '127.0.0.1', 0)
    const options = { address: '127.0.0.1', port, tls, connectionCounters: new Float64Array(16) }
    const listener = await listenHttp(over, { ...options, handler: () => {}, log: quietLog })
    const reloaded = listener.reload(tls)
    await Promise.all([listener.drain(60_000), reloaded])
    const socket = connect({ host: '127.0.0.1', port: listener.port, rejectUnauthorized: false })
    const [outcome] = await once(socket, 'error').catch((error: unknown) => [error])
    t.match(outcome, { code: 'ECONNREFUSED' })
  })
}
