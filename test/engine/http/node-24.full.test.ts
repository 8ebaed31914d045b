import { appendFileSync, cpSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { newerUws, runNode24 } from '../../support/node-24.ts'

/** uWebSockets.js in Node 24, from another package than in Node 20 and 22. */
const BINARY = 'uws_linux_x64_137.node'
const LOAD = `import('/mnt/dist/engine/http/uws-library.js').then(({ loadUws }) => loadUws())
  .then(({ App }) => console.log(typeof App), ({ message }) => console.log(message))`

t.test('Node 24 loads the reviewed binary and no other', async (t) => {
  const changed = join(t.testdir(), 'changed')
  cpSync(await newerUws(), changed, { recursive: true, filter: (path) => !/_(win32|darwin)_/.test(basename(path)) })
  appendFileSync(join(changed, BINARY), 'x')
  const rows = [
    { uws: await newerUws(), expected: /^function$/m },
    { uws: changed, expected: /uws_linux_x64_137\.node: the SHA-256 is [0-9a-f]{64}, expected 98128405/ },
    {
      uws: '',
      expected: /^Node 24\.21\.0 needs: npm install --no-save @btc-vision\/uwebsockets\.js@20\.57\.0$/m,
    },
  ]
  for (const { uws, expected } of rows) {
    t.match(await runNode24(uws, ['-e', LOAD]), { status: 0, output: expected })
  }
})

const FILES = [
  ...['body-chunks', 'connections', 'drain', 'framing', 'keep-alive', 'on-answer'].map((name) => `engine/http/${name}`),
  'api/api',
  'api/threads',
]
for (const file of FILES) {
  t.test(`${file} passes with Node 24`, async (t) => {
    const { status, output } = await runNode24(await newerUws(), ['--enable-source-maps', `dist/test/${file}.test.js`])
    t.equal(status, 0, /^ *not ok .*(\n.*){0,40}/m.exec(output)?.[0] ?? '')
    t.match(output, /^# \{ total: [1-9]\d*, pass: [1-9]\d* \}$/m)
  })
}
