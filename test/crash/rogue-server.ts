import type { ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { generate } from 'selfsigned'
import type { Random } from '../fuzz/random.ts'

/** Wrong answers. None of them acknowledges an event. */
const ROGUE_ANSWERS: readonly ((response: ServerResponse) => void)[] = [
  (response) => response.writeHead(500).end('Internal Server Error'),
  (response) => response.writeHead(503, { 'retry-after': '1' }).end('{"error":"later"}'),
  (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Please log in</html>'),
  (response) => response.writeHead(200).end('{"accepted":0,"duplicates":0,"rejected":[]}'),
  (response) => response.writeHead(200, { 'content-length': '500' }).write('{"accepted":'),
  (response) => response.writeHead(401, { 'content-type': 'text/html' }).end('<html>Please log in</html>'),
  (response) => response.writeHead(413).end(),
  () => {
    // No answer. The proxy closes the connection when the fault ends.
  },
]

/** An HTTPS server that reads every batch, stores none, and answers at random. */
export class RogueServer {
  answers = 0
  /** PEM format. */
  readonly certificate: string
  readonly #server: Server

  private constructor(pems: { private: string; cert: string }, random: Random) {
    this.certificate = pems.cert
    this.#server = createServer({ key: pems.private, cert: pems.cert }, (request, response) => {
      request.on('error', () => {})
      response.on('error', () => {})
      this.answers++
      const answer = random.of(ROGUE_ANSWERS)
      // Some servers answer before they have read the request.
      if (random.below(4) === 0) answer(response)
      else request.resume().once('end', () => answer(response))
    })
  }

  static async listen(random: Random): Promise<RogueServer> {
    // The subject must differ from that of the service's certificate. If two trusted certificates
    // have the same subject, OpenSSL tries only the first.
    const pems = await generate([{ name: 'commonName', value: 'rogue server' }], {
      keyType: 'ec',
      curve: 'P-256',
      extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] }],
    })
    const server = new RogueServer(pems, random)
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
