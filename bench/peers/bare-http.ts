import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'

/**
 * The maximum speed of the socket: node:https without checks and with no fields except the type and
 * the length. Its body is constant.
 */
const [, bytes = '0', key = '', certificate = ''] = process.argv.slice(2)
const body = Buffer.alloc(Number(bytes), 0x7b)
const fields = { 'content-type': 'application/json', 'content-length': bytes }
const server = createServer({ key: readFileSync(key), cert: readFileSync(certificate) }, (_, response) => {
  response.writeHead(200, fields).end(body)
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
