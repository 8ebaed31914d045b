import { join } from 'node:path'
import t from 'tap'
import { Environment } from '../../../engine/lmdb/environment.ts'
import { Family } from '../../../engine/store/family.ts'
import { u64Bytes, uuidBytes } from '../../../engine/store/keys.ts'
import { Store } from '../../../engine/store/store.ts'
import { run, runAdmin, startService } from '../../support/programs.ts'
import { findingsOf, NOON } from '../../support/store.ts'

const ID = '11111111-1111-4111-8111-111111111111'

/** A store as version 2 wrote it: scans were started at once, and nothing was remembered of them beside. */
async function storeOfVersion2(directory: string): Promise<void> {
  const path = join(directory, 'store')
  const environment = new Environment(path, { setting: '--data-dir', schemaVersion: 2, freeBytesMin: 0 })
  const organizations = new Family<object>(environment.table('organizations'), 'organization')
  const scans = new Family<object>(environment.table('scans'), 'scan')
  const names = environment.table('organization-names')
  environment.write(() => {
    organizations.put(uuidBytes(ID), {
      id: ID,
      name: 'Acme',
      domain: 'acme.example',
      plan: 'enterprise',
      createdAtMs: NOON,
      scanFrequency: 'daily',
      evidenceWindowDays: 30,
      approvedPlatformIds: [],
    })
    names.putSync(Buffer.from('acme'), uuidBytes(ID))
    for (const [index, trigger] of ['buffer', 'schedule', 'schedule', 'administrator'].entries()) {
      const id = `22222222-2222-4222-8222-22222222222${index}`
      const startedAtMs = NOON + index * 1000
      scans.put(Buffer.concat([uuidBytes(ID), u64Bytes(startedAtMs), uuidBytes(id)]), {
        id,
        organizationId: ID,
        status: 'completed',
        trigger,
        domain: 'acme.example',
        startedAtMs,
        completedAtMs: startedAtMs + 10,
        eventsFolded: 1,
        summary: { platformsDiscovered: 0, shadowAiCount: 0, overallRiskScore: 0 },
        failure: '',
      })
    }
  })
  await environment.close()
}

t.test('a store of version 2 is brought to this one, once', async (t) => {
  const directory = t.testdir()
  await storeOfVersion2(directory)
  for (let times = 0; times < 2; times++) {
    const store = new Store(directory, { mustExist: true })
    t.equal(store.environment.schemaVersion, 3)
    t.match(store.scanStates.get(ID), { stored: 4, scheduledAtMs: NOON + 2000 })
    t.same(findingsOf(store), [])
    await store.close()
  }
})

t.test('the service itself does it', async (t) => {
  const directory = t.testdir()
  await storeOfVersion2(directory)
  const service = await startService(directory)
  service.child.kill('SIGTERM')
  t.match(await service.ended, { status: 0 })
  const doctor = await runAdmin(['doctor', '--data-dir', directory])
  t.match(doctor, { status: 0, stdout: /\{"about":"schema","value":3,"newest":3\}/ })
  t.match(doctor.stdout, /\{"table":"scans","records":4,/)
})

t.test('a store of a newer release is refused by both programs in one line', async (t) => {
  const directory = t.testdir()
  const path = join(directory, 'store')
  await new Environment(path, { setting: '--data-dir', schemaVersion: 4, freeBytesMin: 0 }).close()
  const line = `STORE_VERSION ${path}: written by a newer release (schema 4), this one reads up to 3; install the newer release\n`
  const data = ['--data-dir', directory]
  t.match(await runAdmin(['organization', 'list', ...data]), { status: 4, stderr: `posture-admin: ${line}` })
  const service = await run('service', ['--api-port', '0', '--ingest-port', '0', ...data])
  t.equal(service.status, 4)
  t.ok(service.stderr.endsWith(`posture-service: ${line}`), service.stderr)
})
