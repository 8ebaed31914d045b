import t from 'tap'
import { IMPLEMENTATIONS, listenOnLoopback } from '../../support/https.ts'
import { exchange, rawClient, statusesOf } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'

/**
 * Where requests and connections end (RFC 9112 §6.3, §9.6). Both ports reject ambiguous requests,
 * and answer nothing after the last answer.
 */
const request = (fields: string, body = '', method = 'GET', path = '/'): string =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\n${fields}\r\n${body}`
const BEHIND = request('', '', 'GET', '/behind')

/**
 * `statuses`: all allowed answers. `mayBeNone`: uWebSockets.js may also close without an answer.
 */
const ROWS: Readonly<Record<string, readonly [bytes: string, statuses: readonly number[], mayBeNone?: boolean]>> = {
  'two lengths': [request('Content-Length: 5\r\nContent-Length: 0\r\n', 'hello'), [400]],
  'the same length twice': [request('Content-Length: 5\r\nContent-Length: 5\r\n', 'hello'), [400]],
  'two lengths, to HEAD': [request('Content-Length: 0\r\nContent-Length: 0\r\n', '', 'HEAD'), [400]],
  'two lengths, the second of which hides a request': [
    request(`Content-Length: 0\r\nContent-Length: ${BEHIND.length}\r\n`, BEHIND),
    [400],
    true,
  ],
  'a last answer': [request('', '', 'GET', '/last'), [400]],
  'a last answer to HEAD': [request('', '', 'HEAD', '/last'), [400]],
  'a late last answer': [request('', '', 'GET', '/last-later'), [400]],
  'a last answer to a request with a body': [request('Content-Length: 5\r\n', 'hello', 'POST', '/last'), [400]],
  'a request after a last answer': [request('', '', 'GET', '/last') + BEHIND, [400], true],
  'a request after a last answer to HEAD': [request('', '', 'HEAD', '/last') + BEHIND, [400], true],
}

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}`, async (t) => {
    let after = 0
    const listener = await listenOnLoopback(t, implementation, {
      handler: async ({ path, method }, response) => {
        if (path === '/behind') after++
        if (path === '/last-later') await new Promise((resolve) => setTimeout(resolve, 20))
        const isLast = path.startsWith('/last')
        response.send({
          status: isLast ? 400 : 200,
          fields: isLast ? ['connection', 'close'] : [],
          body: 'text',
          bodyOmitted: method === 'HEAD',
        })
      },
    })
    for (const [name, [bytes, statuses, mayBeNone]] of Object.entries(ROWS)) {
      const { text, closed } = await exchange(listener.port, bytes)
      const found = statusesOf(text)
      if (!mayBeNone || implementation === 'node' || found.length > 0) t.same(found, statuses, name)
      t.ok(closed, `${name}: closed`)
      if (found.length > 0) t.match(text, /connection: close/i, name)
      t.equal((text.match(/content-length/gi) ?? []).length, found.length, `${name}: one length`)
      const isHead = bytes.startsWith('HEAD')
      // Node's parser rejects two lengths before it reports the method.
      const isRefusedUnread = implementation === 'node' && name.includes('two lengths')
      if (found.length > 0 && !isRefusedUnread)
        t.equal(text.endsWith('\r\n\r\n'), isHead, `${name}: a body, but not to HEAD`)
    }
    t.equal(implementation === 'uws' ? after : 0, 0, 'the hidden request does not reach the handler')
    const client = rawClient(listener.port)
    t.teardown(() => client.socket.destroy())
    client.socket.write(request('', '', 'HEAD') + request(''))
    await until('both answers', () => statusesOf(client.text()).length === 2)
    t.same(statusesOf(client.text()), [200, 200])
    client.socket.write(request(''))
    await until('a third', () => statusesOf(client.text()).length === 3)
    t.pass('other answers leave the connection open')
  })
}
