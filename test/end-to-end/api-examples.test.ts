import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { admin, REPOSITORY, startService } from '../support/programs.ts'

/** The commands of docs/api.md, and what it says that the first one prints. */
const PAGE = readFileSync(join(REPOSITORY, 'docs/api.md'), 'utf8')
const COMMANDS = [...PAGE.matchAll(/^ {4}(curl .*)$/gm)].map(([, command = '']) => command)
const PRINTED = /that prints:\n\n {4}(.*)\n/.exec(PAGE)?.[1] ?? ''

t.test('each command of docs/api.md does what the page says, against a real service', async (t) => {
  const directory = t.testdir()
  const data = join(directory, 'data/service')
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', '--data-dir', data)
  const [made] = await admin('key', 'create', 'docs', '--org', 'Acme', '--data-dir', data)
  const service = await startService(data)
  t.teardown(async () => {
    service.child.kill('SIGTERM')
    await service.ended
  })
  const variables = { SVC_API_KEY: String(made?.['key']), ETAG: `"${'0'.repeat(32)}"` }
  const shell = async (command: string): Promise<string> => {
    const words = command.replace('localhost:8443', `localhost:${service.apiPort}`).replace('curl ', 'curl -sS --fail ')
    const child = spawn('sh', ['-c', words], { cwd: directory, env: { PATH: process.env['PATH'], ...variables } })
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
  const [discovery = '', document = '', nextPage = '', ...more] = COMMANDS
  t.same(more, [], 'no command without a test')
  t.equal(await shell(discovery), PRINTED)
  t.equal(await shell(document), '')
  const written: unknown = JSON.parse(readFileSync(join(directory, 'openapi.json'), 'utf8'))
  t.match(written, { openapi: '3.1.0', paths: { '/api/v1/discovery': { get: {}, head: {} } } })
  t.equal(await shell(nextPage), PRINTED, 'the tag is that of a list that was never made')
})
