import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The receiver of bench/alerts.ts: reads each request and accepts it. Sends its port. */
const server = createServer((request, response) => {
  request.resume().once('end', () => response.writeHead(204).end())
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
