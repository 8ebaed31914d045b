import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { collectorSettings } from '../../collector/config.ts'
import { RegistryUpdates } from '../../collector/registry-updates.ts'
import { provideCertificate } from '../../engine/http/certificate.ts'
import { readSettings } from '../../engine/kernel/process/settings.ts'
import { capturedLog } from '../support/captured-log.ts'
import { listenOn } from '../support/free-port.ts'
import { skipUnlessRoot } from '../support/other-user.ts'
import { BUILT_IN_VERSION, laterVersion, makeUpdate, newPlatform, writeRoot } from '../support/registry-updates.ts'
import { SmallDisk } from '../support/small-disk.ts'

/** What the service answers to a request for the registry. */
interface Offer {
  readonly update?: Buffer
  readonly isRollback?: boolean
}

const updateOf = (by: number): Buffer =>
  makeUpdate(laterVersion(by), { platforms: [newPlatform(`p${by}`, `p${by}.example`)] })
const [V1, V2, V3] = [updateOf(1), updateOf(2), updateOf(3)]

const ROWS: readonly {
  readonly name: string
  readonly offers: readonly Offer[]
  readonly versions: readonly string[]
}[] = [
  {
    name: 'newer releases are used, also after one was left out',
    offers: [{ update: V1 }, { update: V3 }],
    versions: [laterVersion(1), laterVersion(3)],
  },
  {
    name: 'an older release is refused without a rollback',
    offers: [{ update: V2 }, { update: V1 }],
    versions: [laterVersion(2), laterVersion(2)],
  },
  {
    name: 'a rollback to a release that was used before',
    offers: [{ update: V1 }, { update: V2 }, { update: V1, isRollback: true }, { update: V2 }],
    versions: [laterVersion(1), laterVersion(2), laterVersion(1), laterVersion(2)],
  },
  {
    name: 'an older release that was never used is no rollback, whatever the service says',
    offers: [{ update: V2 }, { update: V1, isRollback: true }],
    versions: [laterVersion(2), laterVersion(2)],
  },
  {
    name: 'after a rollback, a release between is refused',
    offers: [{ update: V1 }, { update: V3 }, { update: V1, isRollback: true }, { update: V2 }],
    versions: [laterVersion(1), laterVersion(3), laterVersion(1), laterVersion(1)],
  },
  {
    name: 'the built-in registry after a rollback only',
    offers: [{ update: V1 }, {}, { isRollback: true }],
    versions: [laterVersion(1), laterVersion(1), BUILT_IN_VERSION],
  },
]

for (const { name, offers, versions } of ROWS) {
  t.test(name, async (t) => {
    const site = await serveRegistry(t)
    for (const [at, offer] of offers.entries()) {
      // Each time a new process, so that what must be remembered is on the disk.
      const updates = site.collector()
      site.offer = offer
      await updates.announce(`2099.01.0${at + 1}`)
      t.equal(updates.data.version, versions[at], `${at}`)
      t.equal(site.collector().data.version, versions[at], `${at}, after a restart`)
    }
  })
}

t.test('the file of an earlier program has a floor, too', async (t) => {
  const site = await serveRegistry(t)
  site.offer = { update: V2 }
  await site.collector().announce(laterVersion(2))
  const file = join(t.testdirName, 'outbox/registry.json')
  const { newest, newest_valid_until, ...earlier } = JSON.parse(readFileSync(file, 'utf8'))
  t.same([newest, newest_valid_until.length], [laterVersion(2), 10])
  writeFileSync(file, JSON.stringify(earlier))
  const updates = site.collector()
  site.offer = { update: V1 }
  await updates.announce(laterVersion(1))
  t.equal(updates.data.version, laterVersion(2))
})

t.test('a full disk keeps the registry that is stored', { skip: skipUnlessRoot }, async (t) => {
  const disk = new SmallDisk(t, 1)
  const site = await serveRegistry(t, disk.directory)
  site.offer = { update: V1 }
  await site.collector().announce(laterVersion(1))
  const platforms = Array.from({ length: 100 }, (_, at) => newPlatform(`p${at}`, `p${at}.example`))
  site.offer = { update: makeUpdate(laterVersion(2), { platforms }) }
  // One page, so that the kernel writes a part of the file.
  disk.fillUpTo(4096 / (1024 * 1024))
  const updates = site.collector()
  await updates.announce(laterVersion(2))
  t.equal(updates.data.version, laterVersion(2))
  t.equal(site.collector().data.version, laterVersion(1), 'after a restart')
})

async function serveRegistry(t: Test, outbox?: string) {
  const directory = t.testdir({ outbox: {} })
  const root = writeRoot(directory)
  const { keyFile, certificateFile, fingerprint } = await provideCertificate(join(directory, 'tls'), undefined)
  const site = { offer: {} as Offer, collector }
  const server: Server = createServer(
    { key: readFileSync(keyFile), cert: readFileSync(certificateFile) },
    (_, response) => {
      const { update, isRollback } = site.offer
      if (isRollback) response.setHeader('posture-registry-rollback', 'true')
      response.setHeader('content-type', update === undefined ? 'application/json' : 'application/octet-stream')
      response.end(update ?? JSON.stringify({ registry: '', built_in: true }))
    },
  )
  const port = await listenOn(t, server)
  function collector(): RegistryUpdates {
    const environment = {
      SVC_TOKEN: `svc_mt_${'0'.repeat(48)}`,
      OUTBOX: outbox ?? join(directory, 'outbox'),
      REGISTRY_ROOT: root,
      SVC_ENDPOINT: 'localhost',
      HTTPS_PORT: String(port),
      SERVICE_FINGERPRINT: fingerprint,
    }
    return new RegistryUpdates(readSettings(collectorSettings, { environment }), capturedLog().log, undefined)
  }
  return site
}
