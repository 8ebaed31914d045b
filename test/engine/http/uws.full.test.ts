import { createHash } from 'node:crypto'
import { appendFileSync, cpSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { UWS_BINARIES } from '../../../engine/http/uws-library.ts'
import { runInDebian13, uwsFolder } from '../../support/debian-13.ts'
import { REPOSITORY } from '../../support/programs.ts'
import { testFiles } from '../../support/test-files.ts'

const LOAD = `import('/mnt/dist/engine/http/listen.js').then(({ listenHttp }) => listenHttp('uws', {
  address: '127.0.0.1', port: 0 })).then(({ implementation, drain }) => drain(0).then(() => console.log(implementation)),
  ({ message }) => console.log(message))`

t.test('the recorded hashes are those of the package', async (t) => {
  for (const [abi, hashes] of Object.entries(UWS_BINARIES)) {
    for (const [arch, hash] of Object.entries(hashes)) {
      const name = `uws_linux_${arch}_${abi}.node`
      const bytes = readFileSync(join(await uwsFolder(), name))
      t.equal(createHash('sha256').update(bytes).digest('hex'), hash, name)
    }
  }
})

t.test('the reviewed binary is loaded and no other', async (t) => {
  const changed = join(t.testdir(), 'changed')
  cpSync(await uwsFolder(), changed, { recursive: true, filter: (path) => !/_(win32|darwin)_/.test(basename(path)) })
  for (const abi of [127, 137]) appendFileSync(join(changed, `uws_linux_x64_${abi}.node`), 'x')
  const rows = [
    { uws: await uwsFolder(), expected: /^uWebSockets\.js$/m },
    { uws: changed, expected: /uws_linux_x64_\d+\.node: the SHA-256 is [0-9a-f]{64}, expected/ },
    { uws: '', expected: /^--http-server uws: .* npm install --no-save @btc-vision\/uwebsockets\.js@20\.57\.0$/m },
  ]
  for (const version of [22, 24] as const) {
    for (const { uws, expected } of rows) {
      t.match(await runInDebian13(version, uws, ['-e', LOAD]), { status: 0, output: expected })
    }
  }
})

/**
 * The suites of `npm test` for the HTTP port, and those with a case for uWebSockets.js only.
 * Attacks take long, and the suite with proxies runs the HAProxy of this machine's Debian.
 */
const OTHERS = ['test/api/threads.test.ts', 'test/api/service-faults.full.test.ts']
const SUITES = testFiles()
  .filter(({ suite }) => suite === 'quick')
  .map(({ source }) => source)
  .filter((source) => /import \{[^}]*\bIMPLEMENTATIONS\b/.test(readFileSync(join(REPOSITORY, source), 'utf8')))
  .concat(OTHERS)

for (const source of SUITES) {
  t.test(`${source} passes on uWebSockets.js`, async (t) => {
    const file = `dist/${source.replace(/\.ts$/, '.js')}`
    const { status, output } = await runInDebian13(24, await uwsFolder(), ['--enable-source-maps', file])
    t.equal(status, 0, /^ *not ok .*(\n.*){0,40}/m.exec(output)?.[0] ?? output.slice(-2000))
    t.match(output, /^# \{ total: [1-9]\d*, pass: [1-9]\d* \}$/m)
  })
}
