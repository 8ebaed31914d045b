import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import { promisify } from 'node:util'
import t from 'tap'
import { listenOn } from '../../support/free-port.ts'
import { PROGRAMS } from '../../support/programs.ts'

const run = promisify(execFile)

for (const [name, body] of [
  ['JSON of another program', '{"status":"ok"}'],
  ['a page', '<html>'],
] as const) {
  t.test(`counters: ${name} is not reported as a collector that does not answer`, async (t) => {
    const server = createServer((_request, response) => response.end(body))
    const port = await listenOn(t, server)
    const options = { env: { PATH: process.env['PATH'], HEALTH_PORT: String(port) } }
    await t.rejects(run(process.execPath, [PROGRAMS.collector, 'counters'], options), {
      message: /the answer \(status 200\) is not from a posture-collector of this release/,
    })
  })
}
