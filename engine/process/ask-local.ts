import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { LOCAL_REQUEST_MS } from './local-server.ts'

/**
 * Asks the local endpoint. Not by fetch(), which refuses a list of ports that browsers may not connect to.
 *
 * @throws what a connection throws, and when nothing is answered within LOCAL_REQUEST_MS.
 */
export async function askLocal(
  port: number,
  path: string,
): Promise<{ readonly status: number; readonly text: string }> {
  const asked = get({ host: '127.0.0.1', port, path, signal: AbortSignal.timeout(LOCAL_REQUEST_MS) })
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  return { status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() }
}
