import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { pin } from './harness.ts'

const CONNECTIONS = 64
/** Slower answers are errors. wrk's default of 2 s is too short for 10,000 organizations. */
const TIMEOUT = '30s'

export interface Measured {
  readonly perSecond: number
  readonly p50Us: number
  readonly p99Us: number
}

/** wrk script that cycles through the keys. Requests are created before the clock runs. */
export function luaOf(keys: readonly string[], gzip: boolean): string {
  const list = keys.map((key) => `"${key}"`).join(',')
  return `local keys = {${list}}
local requests = {}
math.randomseed(os.time())
-- Otherwise the first keys would be used in each run, and the others in some.
local at = math.random(#keys)
function init(args)
  for i = 1, #keys do
    requests[i] = wrk.format("GET", nil, {["X-API-Key"] = keys[i]${gzip ? ', ["Accept-Encoding"] = "gzip, deflate"' : ''}})
  end
end
function request()
  at = at % #requests + 1
  return requests[at]
end
function done(summary, latency, all)
  io.write(string.format("measured %.0f %.0f %.0f %d\\n", summary.requests / (summary.duration / 1e6), latency:percentile(50), latency:percentile(99), summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout))
end
`
}

export async function wrk(url: string, script: string, seconds: number): Promise<Measured> {
  const words = ['-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '--timeout', TIMEOUT, '-s', script, url]
  const client = spawn('wrk', words, { stdio: ['ignore', 'pipe', 'inherit'] })
  pin(client.pid ?? 0, 'client')
  let output = ''
  client.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
  })
  await once(client, 'close')
  const [, perSecond, p50Us, p99Us, errors] = /^measured (\d+) (\d+) (\d+) (\d+)$/m.exec(output) ?? []
  if (errors !== '0') throw new Error(`${errors ?? 'all'} requests to ${url} were not answered by 200: ${output}`)
  return { perSecond: Number(perSecond), p50Us: Number(p50Us), p99Us: Number(p99Us) }
}
