import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { LOCAL_REQUEST_MS } from './local-server.ts'

/**
 * Sends a request to the local endpoint. Not by fetch(), which refuses some ports ("bad ports").
 *
 * @throws connection errors, and a timeout after LOCAL_REQUEST_MS
 */
export async function askLocal(
  port: number,
  path: string,
): Promise<{ readonly status: number; readonly text: string }> {
  const request = get({ host: '127.0.0.1', port, path, signal: AbortSignal.timeout(LOCAL_REQUEST_MS) })
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  return { status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() }
}
