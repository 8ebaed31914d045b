import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readGroups, storedGroups } from '../../../engine/admin/client-groups.ts'
import { clientList } from '../../../engine/admin/client-list.ts'
import { storedClients } from '../../../engine/admin/client-use.ts'
import { personOf, personRows } from '../../../engine/admin/persons.ts'
import { reportDocument } from '../../../engine/export/report/article.tsx'
import { reportContent } from '../../../engine/export/report/content.ts'
import { EventAcceptor } from '../../../engine/ingest/accept.ts'
import { CLIENT_GROUP_MEMBERS_MAX } from '../../../engine/limits.ts'
import { groupUse } from '../../../engine/scan/group-use.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import type { ClientMode, Organization } from '../../../engine/store/organizations.ts'
import { RegistryInForce } from '../../../engine/store/registry-in-force.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { admin, runAdmin } from '../../support/programs.ts'
import { makeOrganization, quietLog, registries, Sender, type TestStore } from '../../support/store.ts'

/** Five people in Finance, and one in Board. */
const FILE = `User,Group
ada,Finance
bob,finance,
cyd,Finance
dan,Finance
10.2.0.9,Finance
eve,Board
`
const WITH_BOM = `\uFEFFada,Finance\r\nada,Board\r\n`
const OTHER_TEXTS = `2001:DB8::0:1,Finance\n::ffff:10.2.0.9,Finance\n2001:db8::1,Board\nc#dev,R&D #1\nACME/cyd,Group\n`

const READ: readonly (readonly [name: string, text: string, groups: Record<string, string> | RegExp])[] = [
  ['with a header', FILE, { Finance: 'ada bob cyd dan 10.2.0.9', Board: 'eve' }],
  ['a later row replaces the group of a member', WITH_BOM, { Board: 'ada' }],
  ['nothing', '', {}],
  [
    'addresses in other spellings, and text with # and /',
    OTHER_TEXTS,
    { Finance: '10.2.0.9', Board: '2001:db8::1', 'R&D #1': 'c#dev', Group: 'ACME/cyd' },
  ],
  ['a header with other columns', 'Address,Department,Manager\nada,F\n', { F: 'ada' }],
  ['a first row with the group "Group"', 'ada,Group\n', { Group: 'ada' }],
  ['no group', 'ada\n', /^groups: row 1: expected user or address,group,manager such as/],
  [
    'a manager',
    'ada,F,\nbob,F,grace@acme.example\ncyd,F,Grace@acme.example\n',
    { F: 'ada bob cyd grace@acme.example' },
  ],
  [
    'another manager',
    'ada,F,a@acme.example\nbob,f,b@acme.example\n',
    /row 2: expected the manager of f in an earlier row/,
  ],
  ['no mail address', 'ada,F,Grace\n', /row 1: expected a mail address of the manager, or none; found "ada,F,Grace"/],
  ['an invisible character', 'ada,F,a\u200b@acme.example\n', /row 1: expected a mail address/],
  [
    'a fourth column',
    'ada,F,,\nbob,F,grace@acme.example,x\n',
    /row 2: expected .*; found "bob,F,grace@acme\.example,x"/,
  ],
  ['a network', 'ada,F\n10.2.0.0/16,F\n', /row 2: expected user or address/],
  ['a network of IPv6', '2001:db8::/32,F\n', /row 1: expected user or address/],
  ['an address in brackets', '[2001:db8::1],F\n', /row 1: expected user or address/],
  ['an address in brackets with a port', '[2001:db8::1]:443,F\n', /row 1: expected user or address/],
  ['a control character', 'a\u0007,F\n', /row 1: expected user or address/],
  ['a long name', `a,${'F'.repeat(256)}\n`, /row 1: expected user or address/],
  ['a quote that does not end', 'a,"F\n', /^groups: /],
  [
    'too many members',
    Array.from({ length: CLIENT_GROUP_MEMBERS_MAX + 1 }, (_, at) => `u${at},F\n`).join(''),
    /at most/,
  ],
]

for (const [name, text, expected] of READ) {
  t.test(`a file with groups: ${name}`, async (t) => {
    if (expected instanceof RegExp)
      return t.throws(() => readGroups(text, 'groups'), { code: 'USAGE', message: expected })
    const groups = readGroups(text, 'groups').map(({ name, members, manager = '' }) => {
      return [name, `${members.join(' ')} ${manager}`.trim()]
    })
    return t.same(Object.fromEntries(groups), expected)
  })
}

/** An organization of this mode with use by five people, one of them in two networks, and its groups. */
async function made(t: Test, mode: ClientMode) {
  const opened = acmeSite(t)
  const { store, clock, organization: before, administration } = opened
  const organization = mode === 'full' ? before : administration.organizations.set(before, { clients: mode })
  const sender = new Sender()
  const acceptor = new EventAcceptor(store, clock, quietLog, () => {})
  const use = (name: string, more: object) => sender.event(name, clock.nowMs(), more)
  await acceptor.accept(organization.id, [
    use('chat.deepseek.com', { user: 'ada', client: '10.2.0.1', bytesSent: 1_200_000_000 }),
    use('claude.ai', { user: 'ada', client: '10.3.0.1', bytesSent: 5 }),
    use('claude.ai', { user: 'bob', client: '10.2.0.2', count: 4 }),
    use('claude.ai', { client: '10.2.0.9' }),
    use('claude.ai', { user: 'eve', client: '10.3.0.2' }),
    use('claude.ai', { user: 'fay', client: '10.9.0.2' }),
  ])
  runScan(store, registries, organization.id, 'schedule', clock)
  return { ...opened, administration, organization }
}

async function imported(
  { store, administration, organization }: Awaited<ReturnType<typeof made>>,
  text = FILE,
): Promise<void> {
  administration.clientGroups.replace(organization, await storedGroups(store, organization, readGroups(text, 'groups')))
}

function shown({ store, clock }: TestStore, organization: Organization): string[] {
  return store.environment
    .read(() => groupUse(store, organization, clock.nowMs()))
    .map((use) => `${use.name} ${use.members} ${use.clients} ${use.platformIds.size} ${use.matches} ${use.bytesSent}`)
}

t.test('the use of groups, and of the named networks of clients in no group', async (t) => {
  const site = await made(t, 'full')
  const { store, clock, administration, organization } = site
  t.same(shown(site, organization), [])
  await imported(site)
  administration.clientNames.addNetwork(organization, '10.9.0.0/16', 'Berlin')
  administration.clientNames.addNetwork(organization, '10.2.0.0/16', 'Hamburg')
  t.same(shown(site, organization), [
    'Finance 5 3 2 7 1200000005',
    'Berlin 1 1 1 1 0',
    'Board 1 1 1 1 0',
    'Hamburg 0 0 0 0 0',
  ])
  const clientsOf = (group: string): string[] =>
    store.environment
      .read(() => clientList(store, organization, loadCatalog().platforms, { group }, clock.nowMs()))
      .clients.map(({ client }) => client)
  t.same(clientsOf('Finance'), ['10.2.0.9', 'ada', 'bob'])
  t.same(clientsOf('Berlin'), ['fay'])
  t.same(clientsOf('Nobody'), [])
  const content = store.environment.read(() =>
    reportContent({ store, registry: new RegistryInForce(store) }, organization, clock.nowMs()),
  )
  const document = content.findings === undefined ? '' : reportDocument(content, content.findings)
  t.match(document, /Groups<.*of at least 5 people.*Finance<.*1\.2.GB/s)
  t.notMatch(document, /Board|Berlin/, 'a small group says who its people are')
  const other = makeOrganization(site, 'Globex')
  t.same(shown(site, other), [])
  t.match(
    store.auditLog.ofOrganization(organization.id).map(({ subject }) => subject),
    ['groups of clients'],
  )
})

t.test('with pseudonyms, members are pseudonyms, and small groups are not shown', async (t) => {
  const site = await made(t, 'pseudonym')
  const { store, administration, organization } = site
  await imported(site)
  const members = store.clientGroups.ofOrganization(organization.id).flatMap((group) => group.members)
  t.equal(members.length, 6)
  for (const member of members) t.match(member, /^[pu]-/)
  t.same(shown(site, organization), ['Finance 5 3 2 7 1200000005'])
  for (const mode of ['full', 'pseudonym', 'off', 'full'] as const) {
    const changed = administration.organizations.set(organization, { clients: mode })
    t.same(store.clientGroups.ofOrganization(organization.id), [], `a change to ${mode} erases`)
    for (const _step of administration.organizations.eraseClients(changed));
    if (mode !== 'off') await imported({ ...site, organization: changed })
    else await t.rejects(imported({ ...site, organization: changed }), { code: 'CONFLICT', message: /not with "off"/ })
  }
  const stale = { mode: 'pseudonym', keyId: organization.clientKeyId ?? '', groups: [] } as const
  const replace = () => administration.clientGroups.replace(organization, stale)
  t.throws(replace, { code: 'CONFLICT', message: /import the groups again/ })
})

t.test('pseudonyms of many members leave others their turn', async (t) => {
  const { store, organization } = await made(t, 'pseudonym')
  const groups = readGroups(Array.from({ length: 2000 }, (_, at) => `user ${at},Finance\n`).join(''), 'groups')
  let turns = 0
  const count = (): unknown => setImmediate(() => ++turns < 100 && count())
  count()
  const { groups: stored } = await storedGroups(store, organization, groups)
  t.match(stored, [{ name: 'Finance', people: 2000 }])
  t.ok(turns >= 8, `${turns} turns`)
})

t.test('five people are counted without regard to case', async (t) => {
  const cased = 'ada,Finance\nADA,Finance\nbob,Finance\ncyd,Finance\ndan,Finance\n'
  const hidden = await made(t, 'pseudonym')
  await imported(hidden, cased)
  t.same(shown(hidden, hidden.organization), [])
  await imported(hidden, `${cased}10.2.0.9,Finance\n`)
  t.match(shown(hidden, hidden.organization), [/^Finance 5 /])

  const site = await made(t, 'full')
  const { store, clock, administration, organization } = site
  await imported(site, cased)
  t.match(shown(site, organization), [/^Finance 4 /])
  administration.clientNames.addNetwork(organization, '10.9.0.0/16', 'Berlin')
  const sender = new Sender()
  const users = ['FAY', 'Fay', 'fAY', 'gil', 'hal'].map((user, at) =>
    sender.event('claude.ai', clock.nowMs(), { user, client: `10.9.0.${at}` }),
  )
  await new EventAcceptor(store, clock, quietLog, () => {}).accept(organization.id, users)
  runScan(store, registries, organization.id, 'schedule', clock)
  t.match(shown(site, organization), [/^Berlin 3 6 /, /^Finance 4 /])
})

t.test('a group of the first form, and one with a manager, lose who is erased', async (t) => {
  const site = await made(t, 'pseudonym')
  const { store, administration, organization } = site
  const stored = storedClients(store, organization)
  const first = { name: 'Finance', manager: 'grace@acme.example', members: ['ada', 'bob'].map(stored) }
  store.environment.write(() => store.clientGroups.put(organization.id, first))
  t.same(shown(site, organization), [], 'two people')
  const erase = (text: string): void => {
    const person = personOf(store, organization, [text], false)
    t.match(
      store.environment.read(() => personRows(store, organization, person)),
      [{ kind: 'group' }],
    )
    administration.persons.erase(organization, person)
    for (const _step of administration.organizations.eraseClients(organization));
  }
  erase('bob')
  const left = { name: 'Finance', members: [stored('ada')], people: 1 }
  t.same(store.clientGroups.ofOrganization(organization.id), [{ ...left, manager: 'grace@acme.example' }])
  erase('Grace@acme.example')
  t.same(store.clientGroups.ofOrganization(organization.id), [left])
})

t.test('commands import and list groups', async (t) => {
  const { directory } = await made(t, 'full')
  const data = ['--data-dir', directory]
  const file = join(directory, 'groups.csv')
  writeFileSync(file, `${FILE}eve,Board,heidi@acme.example\n`)
  const rows = [
    { name: 'Finance', kind: 'group', members: 5, clients: 3, platforms: 2, matches: 7 },
    { name: 'Board', members: 1, clients: 1, manager: 'heidi@acme.example' },
  ]
  t.match(await admin('client', 'groups', 'import', file, ...data), rows)
  t.match(await admin('client', 'groups', 'list', ...data), rows)
  t.match(await admin('client', 'list', '--group', 'Board', ...data), [{ client: 'eve' }])
  t.match(await runAdmin(['client', 'list', '--group', 'Nobody', ...data]), {
    status: 5,
    stderr: /no group "Nobody"\. Groups: Board, Finance/,
  })
  writeFileSync(file, 'ada\n')
  t.match(await runAdmin(['client', 'groups', 'import', file, ...data]), {
    stderr: /groups\.csv: row 1: expected user/,
  })
})
