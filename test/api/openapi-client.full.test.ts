import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import openapiTypescript, { astToString } from 'openapi-typescript'
import t from 'tap'
import { ALL_SCOPES, admin, REPOSITORY, startService } from '../support/programs.ts'

const run = promisify(execFile)
const PAGE = readFileSync(join(REPOSITORY, 'docs/connect/api.md'), 'utf8')
/** The documented program. */
const [, PROGRAM = ''] = /^```typescript\n([\s\S]*?)^```$/m.exec(PAGE) ?? []
const TSC = join(REPOSITORY, 'node_modules/typescript/bin/tsc')
const TSCONFIG = {
  compilerOptions: {
    strict: true,
    noUncheckedIndexedAccess: true,
    module: 'nodenext',
    target: 'es2022',
    types: ['node'],
  },
}

t.test('a client generated from the OpenAPI document compiles, and reads a real service', async (t) => {
  // Below the repository, so that the program finds openapi-fetch.
  const directory = t.testdir({ 'package.json': '{ "type": "module" }' })
  const data = join(directory, 'service')
  const ofData = ['--data-dir', data]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...ofData)
  const [key] = await admin('key', 'create', 'client', ...ALL_SCOPES, '--org', 'Acme', ...ofData)
  const [token] = await admin('token', 'generate', 'office', '--org', 'Acme', ...ofData)
  const log = join(directory, 'squid.log')
  const seconds = (Date.now() / 1000).toFixed(3)
  writeFileSync(
    log,
    `${seconds} 318 192.0.2.48 TCP_TUNNEL/200 6120 CONNECT claude.ai:443 - HIER_DIRECT/198.51.100.20 -\n`,
  )
  writeFileSync(join(directory, 'token'), `${token?.['token']}\n`, { mode: 0o600 })
  await admin('ingest', 'file', log, '--token-file', join(directory, 'token'), ...ofData)
  const service = await startService(data, ['--plain-http'])
  t.teardown(() => service.child.kill('SIGKILL'))
  await admin('scan', 'run', '--org', 'Acme', ...ofData)

  const url = `http://127.0.0.1:${service.apiPort}`
  const document = await (await fetch(`${url}/api/v1/openapi.json`)).text()
  writeFileSync(join(directory, 'schema.d.ts'), astToString(await openapiTypescript(document)))
  const compile = async (name: string, text: string): Promise<void> => {
    writeFileSync(join(directory, `${name}.mts`), text)
    const config = join(directory, 'tsconfig.json')
    writeFileSync(config, JSON.stringify({ ...TSCONFIG, files: [`${name}.mts`] }))
    await run(process.execPath, [TSC, '--project', config])
  }
  await compile('list-platforms', PROGRAM)
  const environment = { PATH: process.env['PATH'], POSTURE_URL: url, SVC_API_KEY: String(key?.['key']) }
  const program = join(directory, 'list-platforms.mjs')
  const { stdout } = await run(process.execPath, [program], { env: environment })
  t.match(stdout, /^Claude: risk \d+, waiting\n$/)
  await t.rejects(run(process.execPath, [program], { env: { ...environment, SVC_API_KEY: 'no' } }), /API key/)
  const misspelled = compile('misspelled', PROGRAM.replace('platform_name, metadata', 'platform_nam, metadata'))
  const error = await misspelled.then(
    () => undefined,
    ({ stdout: errors }: { readonly stdout: string }) => errors,
  )
  t.match(error, /Property 'platform_nam' does not exist/, 'the compiler knows the fields of an answer')
})
