import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { claimPort } from '../../engine/http/listen.ts'
import { NGINX, nginxTemporaryFolders } from '../support/nginx.ts'
import { REPOSITORY, startService } from '../support/programs.ts'
import { startSite } from '../support/service-site.ts'

/** The commands of docs/reference/api.md, and the documented output of the first. */
const PAGE = readFileSync(join(REPOSITORY, 'docs/reference/api.md'), 'utf8')
const COMMANDS = [...PAGE.matchAll(/^curl .*$/gm)].map(([command]) => command)
const PRINTED = /this prints:\n\n```json\n(.*)\n/.exec(PAGE)?.[1] ?? ''

t.test('each command of docs/reference/api.md works as documented against a real service', async (t) => {
  const directory = t.testdir()
  const { service, key } = await startSite(t, [], { directory: join(directory, 'data') })
  const variables = { SVC_API_KEY: key, ETAG: `"${'0'.repeat(32)}"` }
  const shell = async (command: string): Promise<string> => {
    const args = command.replace('localhost:8443', `localhost:${service.apiPort}`).replace('curl ', 'curl -sS --fail ')
    const child = spawn('sh', ['-c', args], { cwd: directory, env: { PATH: process.env['PATH'], ...variables } })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk
      })
    }
    const [status] = await once(child, 'close')
    t.equal(status, 0, `${command}: ${output}`)
    return output
  }
  const [discovery = '', document = '', nextPage = '', ...samples] = COMMANDS
  t.equal(await shell(discovery), PRINTED)
  t.equal(await shell(document), '')
  const written: unknown = JSON.parse(readFileSync(join(directory, 'openapi.json'), 'utf8'))
  t.match(written, { openapi: '3.1.0', paths: { '/api/v1/discovery': { get: {}, head: {} } } })
  t.equal(await shell(nextPage), PRINTED, 'the tag is that of a list that was never made')
  t.equal(samples.length, 4, 'one sample request for each endpoint')
  for (const sample of samples) t.type(JSON.parse(await shell(sample)), 'object', sample)
})

t.test('nginx passes requests on with the documented configuration', async (t) => {
  const [, documented = ''] = /^```nginx\n([\s\S]*?)^```$/m.exec(PAGE) ?? []
  t.match(documented, /server 127\.0\.0\.1:8443;/)
  t.match(documented, /listen 127\.0\.0\.1:8080;/)
  const directory = t.testdir()
  const service = await startService(join(directory, 'data'), ['--plain-http', '--ingest-port', 'off'])
  t.teardown(async () => {
    service.child.kill('SIGTERM')
    await service.ended
  })
  const statusThrough = async (configuration: string): Promise<number> => {
    const port = await claimPort('test', '127.0.0.1', 0)
    const where = `daemon off; master_process off; pid ${directory}/pid; error_log ${directory}/errors;`
    const server = configuration.replace(':8443', `:${service.apiPort}`).replace(':8080', `:${port}`)
    writeFileSync(
      join(directory, 'nginx.conf'),
      `${where} events {} http { access_log off; ${nginxTemporaryFolders(directory)} ${server} }`,
    )
    const child = spawn(NGINX, ['-c', join(directory, 'nginx.conf'), '-e', join(directory, 'errors')], {
      stdio: 'ignore',
    })
    const ended = once(child, 'close')
    try {
      for (let polls = 0; polls < 100; polls++) {
        const answer = await fetch(`http://127.0.0.1:${port}/api/v1/openapi.json`).catch(() => undefined)
        if (answer !== undefined) return answer.status
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      return 0
    } finally {
      child.kill('SIGTERM')
      await ended
    }
  }
  t.equal(await statusThrough(documented), 200)
  const old = documented.replace('proxy_http_version 1.1;', 'proxy_http_version 1.0;')
  t.equal(await statusThrough(old), 200, 'as old nginx does by default')
})
