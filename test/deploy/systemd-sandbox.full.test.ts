import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { REPOSITORY } from '../support/programs.ts'
import { startSite } from '../support/service-site.ts'
import { testFolder } from '../support/test-folder.ts'
import { allowedCalls, unitSandbox, unitSandboxMissing } from '../support/unit-sandbox.ts'

const UNIT = 'deploy/systemd/posture-service.service'
const missing = unitSandboxMissing()

t.test('Try a file works with the restrictions of the unit', { skip: missing ?? false }, async (t) => {
  const calls = allowedCalls(UNIT)
  t.ok(calls.has('execve') && calls.has('vfork') && calls.has('wait4'), 'a process can be started')
  t.notOk(calls.has('setrlimit') || calls.has('mount'), 'the filter is in effect')
  const folder = testFolder(t)
  const directory = join(folder, 'service')
  mkdirSync(directory)
  const through = unitSandbox(UNIT, folder, directory)
  const site = await startSite(t, ['--ingest-port', 'off'], { directory: folder, through })
  const browser = await site.owner()
  const capture = readFileSync(join(REPOSITORY, 'test/captures/demo/input.pcap'))
  t.match(await browser.postFile('/try-file', capture, 'demo.pcap'), { status: 200, text: /ChatGPT/ })
  const line = '1760000000.000 12 192.0.2.7 TCP_TUNNEL/200 512 CONNECT claude.ai:443 - HIER_DIRECT/192.0.2.1 -\n'
  const tried = await browser.postFile('/try-file', Buffer.from(line), 'squid.log')
  t.match(tried, { status: 200, text: /Claude/ })
  const [, file = ''] = /name="file" value="([0-9a-f]+)"/.exec(tried.text) ?? []
  const [, token = ''] = /<option value="([^"]+)"[^>]*>sensor</.exec(tried.text) ?? []
  t.match(await browser.submit('/try-file/add', { file, token }), { text: /1 event added/ })
  const { stderr, stdout } = await site.stop()
  t.notMatch(stdout + stderr, /"level":50/, 'no error is logged')
})
