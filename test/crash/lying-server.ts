import type { ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { generate } from 'selfsigned'
import type { Random } from '../fuzz/random.ts'

/** What may answer where the service should: none of it says that an event was taken. */
const LIES: readonly ((response: ServerResponse) => void)[] = [
  (response) => response.writeHead(500).end('Internal Server Error'),
  (response) => response.writeHead(503, { 'retry-after': '1' }).end('{"error":"later"}'),
  (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Please log in</html>'),
  (response) => response.writeHead(200).end('{"accepted":0,"duplicates":0,"rejected":[]}'),
  (response) => response.writeHead(200, { 'content-length': '500' }).write('{"accepted":'),
  (response) => response.writeHead(401, { 'content-type': 'text/html' }).end('<html>Please log in</html>'),
  (response) => response.writeHead(413).end(),
  () => {
    // Says nothing; the proxy ends the connection when the lies end.
  },
]

/** An HTTPS server that takes every batch, keeps none, and answers by chance. */
export class LyingServer {
  answers = 0
  /** PEM. */
  readonly certificate: string
  readonly #server: Server

  private constructor(pems: { private: string; cert: string }, random: Random) {
    this.certificate = pems.cert
    this.#server = createServer({ key: pems.private, cert: pems.cert }, (request, response) => {
      request.on('error', () => {})
      response.on('error', () => {})
      this.answers++
      const lie = random.of(LIES)
      // Some answer before they have read what they answer to.
      if (random.below(4) === 0) lie(response)
      else request.resume().once('end', () => lie(response))
    })
  }

  static async listen(random: Random): Promise<LyingServer> {
    // Another subject than the service's certificate has: of two trusted ones with the same OpenSSL tries the first only.
    const pems = await generate([{ name: 'commonName', value: 'lying server' }], {
      keyType: 'ec',
      curve: 'P-256',
      extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] }],
    })
    const server = new LyingServer(pems, random)
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve))
    return server
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}
