import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DebianTree } from '../../support/debian.ts'
import { skipNamespaces as skip } from '../../support/namespace.ts'
import { released, THIS_MACHINE } from '../../support/released.ts'

/** Runs the single executable on a minimal system. */

const TOKEN = `svc_mt_${'0'.repeat(48)}`

t.test('the executable runs as one file on a minimal Debian', { skip }, async (t) => {
  const tree = new DebianTree(t)
  copyFileSync(released('posture-collector', THIS_MACHINE), join(tree.root, 'usr/local/bin/posture-collector'))
  const run = (args: string) => tree.run(`posture-collector ${args}; echo status $?`)

  t.match(run('selftest | tail -1'), /^(\d+) of \1 seen$/m, 'reads captures without libpcap')
  t.match(run('--list-interfaces'), /"name":"lo"/)
  const capture = `run --interface lo --endpoint localhost --outbox /root/outbox --token ${TOKEN}`
  t.match(
    run(capture),
    /^posture-collector: CAPTURE_DENIED lo: libpcap is missing; install it: "apt-get install libpcap0\.8" on Debian[^\n]*\nstatus 4$/m,
  )
  tree.run('apt-get update && apt-get install -y --no-install-recommends libpcap0.8')
  const check = run(`check --interface lo --outbox /root/outbox --token ${TOKEN}`)
  t.match(check, /"check":"interface","result":"ok"/, 'the library that it named was missing')
})
