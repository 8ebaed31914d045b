import { readFileSync } from 'node:fs'
import { setTimeout as later } from 'node:timers/promises'
import { Agent, request } from 'undici'

/*
 * A separate process with the clients of a service: users of the console, or programs that read the
 * API at a fixed rate.
 */

/**
 * Each user requests a page, reads it for `thinkMs`, and requests the next one, for this time or
 * this number of pages.
 */
export interface Users {
  readonly kind: 'users'
  readonly url: string
  readonly certificateFile: string
  readonly cookies: readonly string[]
  readonly pages: readonly string[]
  readonly thinkMs: number
  readonly until: { readonly seconds: number } | { readonly pagesEach: number }
}

/** Requests at a fixed rate, whether or not earlier ones are answered. */
export interface Programs {
  readonly kind: 'programs'
  readonly url: string
  readonly certificateFile: string
  readonly keys: readonly string[]
  readonly perSecond: number
  readonly seconds: number
}

/** Latencies from the time at which a request was due. */
export interface Load {
  readonly answers: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly bytes: number
}

const CONNECTIONS = 64

process.on('message', async (work: Users | Programs) => {
  process.send?.(await (work.kind === 'users' ? browse(work) : read(work)))
})

async function browse({ url, certificateFile, cookies, pages, thinkMs, until }: Users): Promise<Load> {
  const dispatcher = new Agent({ connect: { ca: readFileSync(certificateFile) }, connections: cookies.length })
  const times: number[] = []
  let bytes = 0
  const endMs = 'seconds' in until ? performance.now() + until.seconds * 1000 : Number.POSITIVE_INFINITY
  const pagesMax = 'pagesEach' in until ? until.pagesEach : Number.POSITIVE_INFINITY
  await Promise.all(
    cookies.map(async (cookie, user) => {
      // The users do not begin in the same moment.
      await later((thinkMs * user) / cookies.length)
      for (let read = 0; read < pagesMax && performance.now() < endMs; read++) {
        const beganMs = performance.now()
        bytes += await fetched(dispatcher, url + pages[(user + read) % pages.length], { cookie })
        times.push(performance.now() - beganMs)
        await later(thinkMs)
      }
    }),
  )
  await dispatcher.close()
  return loadOf(times, bytes)
}

async function read({ url, certificateFile, keys, perSecond, seconds }: Programs): Promise<Load> {
  const dispatcher = new Agent({ connect: { ca: readFileSync(certificateFile) }, connections: CONNECTIONS })
  const times: number[] = []
  const pending: Promise<void>[] = []
  let bytes = 0
  const beganMs = performance.now()
  for (let at = 0; at < perSecond * seconds; at++) {
    const dueMs = beganMs + (at * 1000) / perSecond
    if (dueMs > performance.now()) await later(dueMs - performance.now())
    const ask = async (): Promise<void> => {
      bytes += await fetched(dispatcher, url, { 'x-api-key': keys[at % keys.length] ?? '' })
      times.push(performance.now() - dueMs)
    }
    pending.push(ask())
  }
  await Promise.all(pending)
  await dispatcher.close()
  return loadOf(times, bytes)
}

/** Requests a page as browsers do, compressed, and returns its bytes. */
async function fetched(dispatcher: Agent, url: string, headers: Record<string, string>): Promise<number> {
  const { statusCode, body } = await request(url, { dispatcher, headers: { 'accept-encoding': 'gzip', ...headers } })
  const { byteLength } = await body.arrayBuffer()
  if (statusCode !== 200) throw new Error(`${url}: ${statusCode}`)
  return byteLength
}

function loadOf(times: readonly number[], bytes: number): Load {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0
  return { answers: times.length, p50Ms: at(0.5), p99Ms: at(0.99), bytes }
}
