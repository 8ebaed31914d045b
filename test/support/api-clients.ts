import { readFileSync } from 'node:fs'
import { setTimeout as later } from 'node:timers/promises'
import { Client } from 'undici'

const PATHS = ['/api/v1/discovery', '/api/v1/scores', '/api/v1/recommendations', '/api/v1/assessments']
/** In turn, and with pauses, so that each stays below its limit of 60 requests in 60 s. */
export const KEYS_PER_CLIENT = 4
const PAUSE_MS = 400
/** Longer than any delay of a loaded machine, so that a hang is reported. */
const ANSWER_MS = 120_000

/** A request, with times of performance.now(). */
export interface ApiRequest {
  readonly sentMs: number
  readonly receivedMs: number
  /** 'none': the connection failed before there was an answer. */
  readonly outcome: number | 'none'
}

/** Clients of the API. Each keeps its connection, and sends a request after the other. */
export class ApiClients {
  readonly requests: ApiRequest[] = []
  #isOver = false
  readonly #running: Promise<unknown>

  constructor(origin: string, caFile: string, keys: readonly string[]) {
    const ca = readFileSync(caFile)
    const groups = Array.from({ length: keys.length / KEYS_PER_CLIENT }, (_, index) => {
      return keys.slice(index * KEYS_PER_CLIENT, (index + 1) * KEYS_PER_CLIENT)
    })
    this.#running = Promise.all(groups.map((group) => this.#run(new Client(origin, { connect: { ca } }), group)))
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  async #run(client: Client, keys: readonly string[]): Promise<void> {
    for (let number = 0; !this.#isOver; number++) {
      const path = PATHS[number % PATHS.length] as string
      const key = keys[number % keys.length] as string
      const sentMs = performance.now()
      const outcome = await ask(client, path, key).catch(() => 'none' as const)
      this.requests.push({ sentMs, receivedMs: performance.now(), outcome })
      await later(PAUSE_MS)
    }
    await client.close()
  }
}

async function ask(client: Client, path: string, key: string): Promise<number> {
  const signal = AbortSignal.timeout(ANSWER_MS)
  const { statusCode, body } = await client.request({ method: 'GET', path, headers: { 'x-api-key': key }, signal })
  await body.dump()
  return statusCode
}
