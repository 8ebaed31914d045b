import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { FieldBlock } from '../../../engine/http/fields.ts'
import { listenHttp } from '../../../engine/http/listen.ts'
import type { HttpHandler } from '../../../engine/http/port.ts'
import { IMPLEMENTATIONS } from '../../support/https.ts'
import { quietLog } from '../../support/store.ts'

const HANDLERS: readonly { readonly name: string; readonly handler: HttpHandler }[] = [
  {
    name: 'throws at once',
    handler: () => {
      throw new Error('made for the test')
    },
  },
  {
    name: 'throws later',
    handler: async () => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      throw new Error('made for the test')
    },
  },
  {
    name: 'sends a value with a line break',
    handler: (_, response) => response.send({ status: 200, fields: ['x', 'a\r\nb: c'], body: 'sent' }),
  },
  {
    name: 'sends a name with a line break',
    handler: (_, response) => response.send({ status: 200, fields: ['x: a\nb', 'c'], body: 'sent' }),
  },
  {
    name: 'sends a value with a line break after a block',
    handler: (_, response) =>
      response.send({ status: 200, fields: ['x', 'a\nb: c'], body: 'sent', block: new FieldBlock(['y', 'z']) }),
  },
]

t.test('a block of fields consists of whole lines', async (t) => {
  for (const fields of [['a', 'b\r'], ['a', 'b', 'c\n', 'd'], ['a'], []]) {
    t.throws(() => new FieldBlock(fields), RangeError, JSON.stringify(fields))
  }
})

for (const implementation of IMPLEMENTATIONS) {
  for (const { name, handler } of HANDLERS) {
    t.test(`over ${implementation}: a handler that ${name} is answered with 500, to HEAD without a body`, async (t) => {
      const options = { address: '127.0.0.1', port: 0, handler, log: quietLog }
      const listener = await listenHttp(implementation, options)
      t.teardown(() => listener.drain(1000))
      const [toHead = '', toGet = ''] = await answersTo(listener.port, ['HEAD', 'GET'])
      t.match(toHead, /^HTTP\/1\.1 500 [\s\S]*content-length: 26[\s\S]*\r\n\r\n$/i)
      t.match(toGet, /^HTTP\/1\.1 500 [\s\S]*\r\n\r\n\{"error":"Internal error"\}$/)
    })
  }
}

/**
 * The raw answers to successive requests on one connection, split at each status line. An HTTP
 * client would hide surplus bytes.
 */
async function answersTo(port: number, methods: readonly string[]): Promise<string[]> {
  const socket = connect(port, '127.0.0.1')
  let bytes = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    bytes += chunk
  })
  const closed = once(socket, 'close')
  for (const [at, method] of methods.entries()) {
    const last = at === methods.length - 1
    socket.write(`${method} / HTTP/1.1\r\nHost: localhost\r\n${last ? 'Connection: close\r\n' : ''}\r\n`)
    if (!last) await once(socket, 'data')
  }
  await closed
  return bytes.split(/(?=HTTP\/1\.1 )/)
}
