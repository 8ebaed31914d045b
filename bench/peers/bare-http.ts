import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'

/**
 * The maximum speed of the socket: node:http without checks and with no fields except the type and
 * the length. Its body is constant, or one of `count` bodies in turn, which come from memory and
 * not from the processor's cache.
 */
const [, bytes = '0', key = '', certificate = '', count = '1'] = process.argv.slice(2)
const bodies = Array.from({ length: Number(count) }, () => Buffer.alloc(Number(bytes), 0x7b))
const fields = { 'content-type': 'application/json', 'content-length': bytes }
let at = 0
const answer: RequestListener = (_, response) => {
  at = at + 1 === bodies.length ? 0 : at + 1
  response.writeHead(200, fields).end(bodies[at])
}
const server =
  key === ''
    ? createServer(answer)
    : createTlsServer({ key: readFileSync(key), cert: readFileSync(certificate) }, answer)
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
