import type { Socket } from 'node:net'
import { UPDATE_BYTES_MAX } from '../../registry/signed-release.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { assertExpected } from '../kernel/process/failure.ts'
import { readInput } from '../kernel/process/input-file.ts'
import type { Network } from '../kernel/process/network.ts'
import { connectTo, requestOver } from '../kernel/process/outbound-address.ts'
import { programVersion } from '../kernel/process/version.ts'

/** For the whole download, in milliseconds. A release has 0.1 MB. */
const DOWNLOAD_MS_MAX = 60_000

export interface FetchOptions {
  /** Networks that may be connected although they are not public. */
  readonly allowed: readonly Network[]
  /** PEM. '' trusts the certificates of the system. */
  readonly ca: string
}

/** The bytes of an update file, from a file or an https URL. @throws Fault REGISTRY_UPDATE. */
export async function updateBytes(from: string, options: FetchOptions): Promise<Uint8Array> {
  if (/^https:\/\//i.test(from) && URL.canParse(from)) return download(new URL(from), options)
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(from)) throw fetchFault(from, 'expected a file or an https URL')
  return readInput(from, UPDATE_BYTES_MAX, { what: '', code: 'REGISTRY_UPDATE' })
}

/** One request over a connection to a checked address. Follows no redirect. */
async function download(url: URL, { allowed, ca }: FetchOptions): Promise<Uint8Array> {
  // Neither a password nor a token of the URL belongs in a log.
  const named = `${url.origin}${url.pathname}`
  const signal = AbortSignal.timeout(DOWNLOAD_MS_MAX)
  let socket: Socket | undefined
  try {
    socket = await connectTo(url, allowed, DOWNLOAD_MS_MAX)
    const headers = { 'user-agent': `posture-admin/${programVersion()}`, accept: 'application/octet-stream' }
    const answer = await requestOver(socket, url, { method: 'GET', headers, signal }, '', ca === '' ? {} : { ca })
    const { statusCode = 0 } = answer
    if (statusCode >= 300 && statusCode < 400)
      throw fetchFault(named, `answered ${statusCode}; redirects are not followed`)
    if (statusCode !== 200) throw fetchFault(named, `answered ${statusCode}`)
    const parts: Buffer[] = []
    let bytes = 0
    for await (const part of answer) {
      parts.push(part as Buffer)
      bytes += (part as Buffer).length
      if (bytes > UPDATE_BYTES_MAX) throw fetchFault(named, `sends more than ${UPDATE_BYTES_MAX} bytes`)
    }
    return Buffer.concat(parts)
  } catch (error) {
    if (error instanceof Fault) throw error
    assertExpected(error)
    const why = signal.aborted ? `no complete answer in ${DOWNLOAD_MS_MAX / 1000} s` : (error as Error).message
    throw fetchFault(named, why, error)
  } finally {
    socket?.destroy()
  }
}

function fetchFault(from: string, why: string, cause?: unknown): Fault {
  return new Fault('REGISTRY_UPDATE', `${from}: ${why}`, { cause })
}
