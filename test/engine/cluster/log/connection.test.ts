import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { connectToBrokers } from '../../../../engine/cluster/log/connection.ts'
import { quietLog } from '../../../support/store.ts'

t.test('credentials that other users can read are refused', async (t) => {
  const credentialsFile = join(t.testdir(), 'service.nk')
  writeFileSync(credentialsFile, `SU${'A'.repeat(56)}\n`)
  const rows = [
    {
      mode: 0o644,
      expected: { code: 'USAGE', message: /^--broker-credentials-file \S+: mode 0644 gives other users access/ },
    },
    { mode: 0o620, expected: { code: 'USAGE', message: /mode 0620/ } },
    { mode: 0o600, expected: { code: 'BROKERS_UNREACHABLE' } },
  ]
  for (const { mode, expected } of rows) {
    chmodSync(credentialsFile, mode)
    const options = { servers: ['127.0.0.1:1'], credentialsFile, caFile: '' }
    await t.rejects(connectToBrokers(options, quietLog), expected, mode.toString(8))
  }
})
