import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'

/** A TCP port of 127.0.0.1 on which nothing listened a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Makes a server listen on a free port of 127.0.0.1 until the test ends. Returns the port. */
export async function listenOn(
  t: { teardown(work: () => unknown): void },
  server: Server & { closeAllConnections?(): void },
): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections?.()
  })
  return (server.address() as AddressInfo).port
}
