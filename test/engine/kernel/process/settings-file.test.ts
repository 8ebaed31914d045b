import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { serviceSettings } from '../../../../api/config.ts'
import { collectorSettings } from '../../../../collector/config.ts'
import { environmentWith } from '../../../../engine/kernel/process/settings.ts'

const GOOD: readonly { readonly text: string; readonly found: Readonly<Record<string, string>> }[] = [
  { text: 'INTERFACE=eth1\nLOG_LEVEL = DEBUG\r\n', found: { INTERFACE: 'eth1', LOG_LEVEL: 'DEBUG' } },
  { text: '\n  # INTERFASE=eth1\n; a comment of systemd\nexport INTERFACE="eth 1"', found: { INTERFACE: 'eth 1' } },
  {
    text: 'HTTPS_PROXY=http://p:1\nno_proxy=a\nNODE_OPTIONS=--x\nPOSTURE_UNPACK_DIR=/x\nTZ=UTC\n',
    found: { HTTPS_PROXY: 'http://p:1', no_proxy: 'a', NODE_OPTIONS: '--x', POSTURE_UNPACK_DIR: '/x', TZ: 'UTC' },
  },
]

const WRONG: readonly { readonly text: string; readonly faults: readonly string[] }[] = [
  { text: 'INTERFASE=eth1', faults: ['1: unknown setting INTERFASE. Did you mean INTERFACE?'] },
  { text: 'interface=eth1', faults: ['1: unknown setting interface. Did you mean INTERFACE?'] },
  { text: '\n#\nAPI_PORT=1\n', faults: ['3: unknown setting API_PORT'] },
  // Renamed.
  { text: 'RING_SIZE=4', faults: ['1: RING_SIZE is now CAPTURE_BUFFER_MB'] },
  { text: 'INTERFACE eth1', faults: ['1: expected NAME=value'] },
  { text: 'svc_mt_secret', faults: ['1: expected NAME=value'] },
  {
    text: 'SVC_TOKN=svc_mt_secret\nINTERFACE=eth1\n=x',
    faults: ['1: unknown setting SVC_TOKN. Did you mean SVC_TOKEN?', '3: expected NAME=value'],
  },
]

t.test('a settings file', async (t) => {
  const file = join(t.testdir(), 'collector.env')
  const read = (text: string, schema: Parameters<typeof environmentWith>[1] = collectorSettings) => {
    writeFileSync(file, text)
    return environmentWith({ settingsFile: file }, schema)
  }
  for (const { text, found } of GOOD) t.match(read(text), found, text)
  for (const { text, faults } of WRONG) {
    const message = faults.map((fault) => `${file}:${fault}`).join('\n')
    t.throws(() => read(text), { code: 'USAGE', message }, text)
  }
  t.throws(() => read('API_PROT=1', serviceSettings), {
    message: `${file}:1: unknown setting API_PROT. Did you mean API_PORT?`,
  })
  t.equal(environmentWith({}, collectorSettings), process.env)
})
