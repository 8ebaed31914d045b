import t, { type Test } from 'tap'
import { IMPLEMENTATIONS } from '../support/https.ts'
import { jsonLines } from '../support/programs.ts'
import { exchange, statusesOf } from '../support/raw-client.ts'
import { startSite } from '../support/service-site.ts'

/** The access log of a running service: one line per request, with the allowed fields only. */
async function start(t: Test, ...parameters: string[]) {
  const site = await startSite(t, ['--plain-http', '--ingest-port', 'off', ...parameters])
  const { service, key, organizationId: organization } = site
  /** The request lines so far. */
  const lines = () => jsonLines(service.output.stderr.replace(/^(?!.*"msg":"request").*$/gm, ''))
  return { service, key, organization, lines }
}

const request = (path: string, fields = '', method = 'GET'): string =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${fields}\r\n`

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}: each request has a line without text from the client`, async (t) => {
    const { service, key, organization, lines } = await start(
      t,
      '--http-server',
      implementation,
      '--access-log-max-per-second',
      '1000',
    )
    const own = `X-API-Key: ${key}\r\n`
    const known = { organization, key_visible: key.slice(7, 15) }
    const rows: { bytes: string; line: Record<string, unknown> }[] = [
      {
        bytes: request('/api/v1/scores', own),
        line: { method: 'GET', path: '/api/v1/scores', status: 200, bytes: 13, ...known },
      },
      { bytes: request(`/api/v1/scores?key=${key}`, own), line: { path: '/api/v1/scores', status: 200, ...known } },
      { bytes: request('/api/v1/scores', own, 'HEAD'), line: { method: 'HEAD', status: 200, bytes: 0, ...known } },
      { bytes: request('/api/v1/discovery?limit=0', own), line: { path: '/api/v1/discovery', status: 400, ...known } },
      { bytes: request('/api/v1/scores'), line: { path: '/api/v1/scores', status: 401, bytes: 27 } },
      { bytes: request('/api/v1/openapi.json'), line: { path: '/api/v1/openapi.json', status: 200 } },
      { bytes: request(`/api/v1/scores/${key}`), line: { method: 'GET', path: 'other', status: 404 } },
      { bytes: request('/constructor'), line: { path: 'other', status: 404 } },
      { bytes: request('/api/v1/scores', own, 'DELETE'), line: { method: 'DELETE', status: 405 } },
    ]
    // Node's parser rejects unregistered methods.
    if (implementation === 'uws') {
      rows.push({ bytes: request('/api/v1/scores', '', key), line: { method: 'other', status: 405 } })
      rows.push({ bytes: request('/api/v1/scores', '', 'M'.repeat(3000)), line: { method: 'other', status: 405 } })
    }
    for (const [at, { bytes, line }] of rows.entries()) {
      const { text } = await exchange(service.apiPort, bytes)
      t.same(statusesOf(text), [line['status']])
      // The answer can arrive before the log line.
      for (let polls = 0; polls < 100 && lines().length <= at; polls++)
        await new Promise((done) => setTimeout(done, 20))
      const all = lines()
      t.equal(all.length, at + 1, 'one line')
      t.match(all.at(-1), { address: /^(::ffff:)?127\.0\.0\.1$/, ...line })
      if (!('organization' in line)) t.notOk('key_visible' in (all.at(-1) ?? {}), 'no organization is named')
    }
    t.notOk(service.output.stderr.includes(key), 'no key')
    t.notOk(service.output.stderr.includes(key.slice(15)), 'no part of a key')
  })

  t.test(`over ${implementation}: the access log is off by default`, async (t) => {
    const { service, key, lines } = await start(t, '--http-server', implementation)
    await exchange(service.apiPort, request('/api/v1/scores', `X-API-Key: ${key}\r\n`))
    t.same(lines(), [])
  })

  t.test(`over ${implementation}: each thread samples requests and logs the number omitted`, async (t) => {
    const threads = implementation === 'uws' ? 3 : 1
    const { service, lines } = await start(
      t,
      ...['--http-server', implementation, '--access-log-max-per-second', '5', '--api-threads', String(threads)],
    )
    const many = Array.from({ length: 60 }, () => exchange(service.apiPort, request('/nothing'), { waitMs: 5000 }))
    for (const { text } of await Promise.all(many)) t.same(statusesOf(text), [404])
    const seconds = 4
    t.ok(lines().length >= 5, `${lines().length} lines`)
    t.ok(lines().length <= 5 * threads * seconds, 'fewer lines than requests')
    // One second later, each thread logs a line again, with the number of lines that it has
    // omitted.
    await new Promise((resolve) => setTimeout(resolve, 1100))
    const reported = (): number => lines().reduce((sum, line) => sum + 1 + Number(line['skipped'] ?? 0), 0)
    let asked = 60
    for (; reported() < asked && asked < 300; asked++) {
      await exchange(service.apiPort, request('/nothing'))
      if (asked % 4 === 0) await new Promise((resolve) => setTimeout(resolve, 300))
    }
    t.equal(reported(), asked, 'every request has a line or is counted as omitted')
    t.equal(new Set(lines().map((line) => line['thread'])).size, threads)
  })
}
