import t from 'tap'
import { linkHash } from '../../../engine/admin/account-links.ts'
import { Accounts } from '../../../engine/admin/accounts.ts'
import { Administration } from '../../../engine/admin/administration.ts'
import { auditLines } from '../../../engine/cli/audit.ts'
import { EventAcceptor } from '../../../engine/ingest/accept.ts'
import { IngestAccounting, storeSink } from '../../../engine/ingest/ingest-accounting.ts'
import { RETENTION_RECORDS_PER_STEP } from '../../../engine/limits.ts'
import { runScan, ScanRunner } from '../../../engine/scan/scan-runner.ts'
import { hashSecret } from '../../../engine/store/access-key.ts'
import { DailyRetention } from '../../../engine/store/daily-retention.ts'
import { uuidBytes } from '../../../engine/store/keys.ts'
import type { Organization } from '../../../engine/store/organizations.ts'
import { REMOVALS_TABLE } from '../../../engine/store/removals.ts'
import type { SourceDelta } from '../../../engine/store/sources.ts'
import { acmeSite } from '../../support/acme-site.ts'
import {
  findingsOf,
  makeOrganization,
  openStore,
  quietLog,
  registries,
  Sender,
  type TestStore,
} from '../../support/store.ts'

/**
 * Tables, and the number of their records whose key begins with the organization, except the record
 * that it was removed.
 */
function recordsOf({ store }: TestStore, id: string): Record<string, number> {
  const prefix = uuidBytes(id)
  const counts = [...store.environment.tables].map(([name, table]) => {
    const keys = [...table.getKeys({})].filter((key) => key.subarray(0, prefix.length).equals(prefix))
    return [name, keys.length] as const
  })
  return Object.fromEntries(counts.filter(([name, count]) => count > 0 && name !== REMOVALS_TABLE))
}

function source(organizationId: string, address: string): SourceDelta {
  return {
    ...{ organizationId, tokenId: organizationId, listener: 'tcp', address, host: 'fw', lastSeenMs: 1 },
    ...{
      received: 1,
      counts: [0, 0, 1],
      formats: {},
      sample: '',
      zoneMinutes: 0,
      timesUnread: 0,
      hasUnknownToken: false,
    },
  }
}

/** An organization with records in many tables, more than one transaction deletes. */
async function furnished(opened: TestStore) {
  const { store, clock } = opened
  const administration = new Administration(store, clock)
  const acme = makeOrganization(opened, 'Acme')
  const { id } = acme
  const key = administration.apiKeys.create(acme, 'dashboard', ['scores:read'])
  const token = administration.tokens.generate(acme, 'sensor')
  administration.tokens.bind(acme, token.record.id, [{ network: '192.0.2.1', port: 0 }])
  administration.members.add(acme, 'ada', 'owner')
  administration.assessments.create(acme, 'nist-csf-2')
  const acceptor = new EventAcceptor(store, clock, quietLog, () => {})
  const sender = new Sender()
  await acceptor.accept(id, [sender.event('claude.ai', clock.nowMs())])
  runScan(store, registries, id, 'schedule', clock)
  await acceptor.accept(id, [sender.event('claude.ai', clock.nowMs())])
  store.environment.write(() => {
    store.sources.add(Array.from({ length: 2 * RETENTION_RECORDS_PER_STEP }, (_, at) => source(id, `192.0.2.${at}`)))
    store.keyUses.put({ organizationId: id, keyId: key.record.id, timeMs: clock.nowMs() })
  })
  return { administration, acme, key, token, acceptor, sender }
}

t.test('removing an organization deletes every record of it, in bounded steps, and none of another', async (t) => {
  const opened = openStore(t)
  const { store } = opened
  const other = makeOrganization(opened, 'Other')
  new Administration(store, opened.clock).tokens.generate(other, 'sensor')
  const othersBefore = recordsOf(opened, other.id)
  const { administration, acme, key, token } = await furnished(opened)
  let exported = ''
  const removal = administration.organizations.remove(acme, (entries) => {
    exported += auditLines(entries, acme.name)
  })

  t.equal(store.apiKeys.byHash(hashSecret(key.raw)), undefined, 'from the first transaction on')
  t.equal(store.monitoringTokens.byHash(hashSecret(token.raw)), undefined)
  t.throws(() => administration.organization('Acme'), { code: 'NOT_FOUND' })
  t.same(findingsOf(store), [], 'records that wait for deletion are not reported as damage')
  t.throws(() => administration.apiKeys.create(acme, 'late', ['scores:read']), { code: 'NOT_FOUND' })

  const steps = [...store.removals.finish(removal)]
  t.ok(steps.length > 2 && steps.every((records) => records <= RETENTION_RECORDS_PER_STEP), steps.join(' '))
  t.same(recordsOf(opened, acme.id), {})
  t.same(store.removals.all(), [])
  t.same(recordsOf(opened, other.id), othersBefore)
  const lines = exported.trimEnd().split('\n')
  const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  t.equal(entries.length, 6)
  t.match(entries[0], { action: 'api-key.create', subject: 'dashboard', organization: 'Acme', actor: /^operator/ })
  t.match(entries.at(-1), { action: 'organization.remove', subject: 'Acme', time: /Z$/ })
})

t.test('without the export nothing is removed', async (t) => {
  const opened = openStore(t)
  const { administration, acme } = await furnished(opened)
  const before = recordsOf(opened, acme.id)
  t.throws(() =>
    administration.organizations.remove(acme, () => {
      throw new Error('no space left')
    }),
  )
  t.same(recordsOf(opened, acme.id), before)
})

t.test('operations in progress when the organization is removed write nothing', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const { administration, acme, acceptor, sender } = await furnished(opened)
  const accounting = new IngestAccounting(storeSink(store), quietLog)
  accounting.add({ sources: [source(acme.id, '198.51.100.1')], rejects: [], candidates: [] })
  const runner = new ScanRunner(store, registries, clock)
  const prepared = new Promise<void>((resolve) => {
    // The scan reads the time when it is prepared, right before its transaction.
    const nowMs = clock.nowMs.bind(clock)
    let calls = 0
    Object.assign(clock, {
      nowMs: () => {
        if (++calls === 2) {
          const removal = administration.organizations.remove(acme, () => {})
          for (const _step of store.removals.finish(removal));
          resolve()
        }
        return nowMs()
      },
    })
  })
  t.same(runner.run([{ organizationId: acme.id, trigger: 'schedule' }]), [], 'no outcome, and no failure')
  await prepared
  t.match(await acceptor.accept(acme.id, [sender.event('claude.ai', clock.nowMs())]), { kind: 'removed' })
  await accounting.write()
  t.same(recordsOf(opened, acme.id), {})
})

t.test('the unused links of a removed organization are removed with it', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const administration = new Administration(store, clock)
  const [acme, other] = ['Acme', 'Other'].map((name) => makeOrganization(opened, name)) as [Organization, Organization]
  administration.members.add(acme, 'bob', 'member')
  administration.accountLinks.invite(acme, 'bob')
  administration.accountLinks.setup(acme)
  administration.accountLinks.setup(other)
  administration.organizations.remove(acme, () => {})
  t.match(store.accountLinks.all(), [{ kind: 'setup', organizationId: other.id }])
  t.same(findingsOf(store), [], 'otherwise every backup fails')
})

t.test('users of no other organization are removed with it, and others stay', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const administration = new Administration(store, clock)
  const accounts = new Accounts(store, clock)
  const [acme, other] = ['Acme', 'Other'].map((name) => makeOrganization(opened, name)) as [Organization, Organization]
  const join = (organization: Organization, name: string, userId = ''): string => {
    administration.members.add(organization, name, 'owner')
    const link = linkHash(administration.accountLinks.invite(organization, name).secret).toString('hex')
    const use = { linkHash: link, userId, userName: name, passwordHash: 'hash', organization: undefined }
    return accounts.useLink(use).userId
  }
  const signIn = (userId: string, at: number): void => {
    const [sessionHash, browserHash] = [hashSecret(`session ${at}`), hashSecret(`browser ${at}`)]
    const hashes = { sessionHash: sessionHash.toString('hex'), browserHash: browserHash.toString('hex'), endedHash: '' }
    accounts.signIn(userId, { ...hashes, address: '192.0.2.1', browser: 'Firefox', organizationId: acme.id })
  }
  const [ada, bob] = [join(acme, 'ada'), join(acme, 'bob')]
  join(other, 'ada', ada)
  signIn(ada, 1)
  signIn(bob, 2)
  administration.accountLinks.password('ada')
  administration.accountLinks.password('bob')

  administration.organizations.remove(acme, () => {})
  t.match(store.users.all(), [{ id: ada, name: 'ada' }])
  t.equal(store.sessions.ofUser(ada).length, 1)
  t.same(store.sessions.ofUser(bob), [])
  t.match(store.accountLinks.all(), [{ kind: 'password', name: 'ada' }])
  t.equal(store.accountLinks.all().length, 1, 'no link sets the password of the next bob')
  t.same(findingsOf(store), [])
  t.not(join(other, 'bob'), bob, 'the name is free')
})

t.test('the service completes a removal that was killed', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const { administration, acme } = await furnished(opened)
  const removal = administration.organizations.remove(acme, () => {})
  store.removals.finish(removal).next()
  t.not(store.removals.left(removal), 0)
  await new DailyRetention(store, clock, quietLog).run()
  t.same(recordsOf(opened, acme.id), {})
  t.same(store.removals.all(), [])
})

t.test('a renamed organization is found by its new name only', async (t) => {
  const opened = acmeSite(t)
  const { organization: acme, administration } = opened
  makeOrganization(opened, 'Other')
  t.throws(() => administration.organizations.rename(acme, 'OTHER'), { code: 'CONFLICT' })
  t.throws(() => administration.organizations.rename(acme, ' '), { code: 'USAGE' })
  administration.organizations.rename(acme, 'Acme Corp')
  t.equal(administration.organization('acme corp').id, acme.id)
  t.throws(() => administration.organization('Acme'), { code: 'NOT_FOUND' })
  administration.organizations.rename(administration.organization('Acme Corp'), 'ACME CORP')
  t.equal(administration.organization(acme.id).name, 'ACME CORP')
})
