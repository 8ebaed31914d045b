import type { SMTPServerOptions } from 'smtp-server'
import t, { type Test } from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { readGroups, storedGroups } from '../../../engine/admin/client-groups.ts'
import { lastNotified, managerText } from '../../../engine/admin/managers.ts'
import { EventAcceptor } from '../../../engine/ingest/accept.ts'
import { HOUR_MS } from '../../../engine/kernel/process/clock.ts'
import { lastDaysOf } from '../../../engine/scan/periods.ts'
import { platformGroups } from '../../../engine/scan/platform-groups.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import type { ClientMode, Organization } from '../../../engine/store/organizations.ts'
import { alertSite } from '../../support/alerts.ts'
import { admin, runAdmin } from '../../support/programs.ts'
import { smtpServer } from '../../support/smtp-server.ts'
import { quietLog, registries, Sender } from '../../support/store.ts'

const PEOPLE = ['ada', 'bob', 'cyd', 'dan', 'eve']
const GROUPS = [
  ...PEOPLE.map((name) => `${name},Finance,grace@acme.example`),
  'fay,Board,heidi@acme.example',
  'gil,Sales',
  'hal,IT,ivan@acme.example',
].join('\n')
const TEXT = 'Hello,\r\nplease ask them.'
const CLAUDE = { id: 'claude', name: 'Claude' }

/** Use by people of each group, groups with managers, and a mail server. */
async function made(
  t: Test,
  {
    mode = 'full',
    alertPeople = false,
    server = {},
  }: { mode?: ClientMode; alertPeople?: boolean; server?: SMTPServerOptions } = {},
) {
  const site = alertSite(t)
  const { store, clock, administration, directory } = site
  const organization = administration.organizations.set(site.organization, { clients: mode, alertPeople })
  const { port, mails, ca } = await smtpServer(t, directory, { authOptional: true, ...server })
  const mail = { host: 'localhost', from: 'posture@acme.example', to: ['soc@acme.example'], port, ca }
  site.addChannel({ kind: 'smtp', ...mail }, { name: 'mail', of: organization })
  const sender = new Sender()
  const use = (user: string, more = {}) => sender.event('claude.ai', clock.nowMs(), { user, ...more })
  const events = [use('ada', { count: 9 }), use('bob'), use('fay'), use('gil'), use('hal', { count: 1, blocked: 1 })]
  const stored = await storedGroups(store, organization, readGroups(GROUPS, 'groups'))
  if (mode !== 'off') administration.clientGroups.replace(organization, stored)
  await new EventAcceptor(store, clock, quietLog, () => {}).accept(organization.id, events)
  runScan(store, registries, organization.id, 'administrator', clock)
  const range = lastDaysOf(organization.evidenceWindowDays, clock.nowMs())
  const groups = (of: Organization = organization) =>
    store.environment.read(() => platformGroups(store, of, CLAUDE.id, range))
  const notify = (names: readonly string[], text = TEXT, channel?: string) =>
    administration.managers.notifyManagers(organization, { platform: CLAUDE, groups: names, range, text, channel })
  return { ...site, organization, mails, groups, notify }
}

/** The text of a mail without its quoted-printable encoding. */
function decoded(text = ''): string {
  return text.replaceAll(/=\r?\n/g, '').replaceAll('\r\n', '\n')
}

t.test('the manager of each group with use gets a mail, which names people only if that is allowed', async (t) => {
  for (const [mode, alertPeople, sent] of [
    ['full', false, { 'heidi@acme.example': ['1'], 'grace@acme.example': ['2'] }],
    ['full', true, { 'heidi@acme.example': ['1', '- fay'], 'grace@acme.example': ['2', '- ada', '- bob'] }],
    ['pseudonym', true, { 'grace@acme.example': ['2'] }],
  ] as const) {
    const site = await made(t, { mode, alertPeople })
    const { store, organization, mails, groups, notify } = site
    const notified = groups().filter(({ manager, people }) => manager !== '' && people.length > 0)
    notify(notified.map(({ name }) => name))
    const dead = store.alertChannels.ofOrganization(organization.id).map(({ id }) => {
      return store.alertChannels.deadLetters(organization.id, id)
    })
    await site.deliver()
    t.same(dead, [[]])
    const received = mails.map(({ to, text }) => {
      const [, count = '', people = ''] =
        /People who used Claude from .* \(UTC\): (\d)\n(.*)$/s.exec(decoded(text)) ?? []
      return [to.join(), [count, ...people.split('\n').filter((line) => line !== '')]]
    })
    t.same(Object.fromEntries(received), sent, `${mode}, people in alerts: ${alertPeople}`)
    for (const { text } of mails) {
      t.match(decoded(text), /^Subject: \[Acme\] Use of Claude in (Finance|Board)$/m)
      t.match(decoded(text), /^Hello,\nplease ask them\.\n\nGroup: (Finance|Board)$/m)
    }
    const entry = lastNotified(store, organization.id, 'Claude')
    t.match(entry, { subject: 'Claude', details: { mails: notified.length, channel: 'mail' } })
  }
})

t.test('a message that waits is not sent when the group, its manager or its use was erased', async (t) => {
  for (const [name, change] of [
    ['nothing', () => {}],
    [
      'another mode',
      ({ administration, organization }) => administration.organizations.set(organization, { clients: 'off' }),
    ],
    [
      'without the manager',
      ({ administration, organization }) => administration.persons.erase(organization, ['heidi@acme.example']),
    ],
    ['without the people', ({ administration, organization }) => administration.persons.erase(organization, ['fay'])],
  ] as readonly (readonly [string, (site: Awaited<ReturnType<typeof made>>) => unknown])[]) {
    const site = await made(t)
    const { store, administration, organization, mails, notify } = site
    notify(['Board'])
    change(site)
    for (const _step of administration.organizations.eraseClients(organization));
    await site.deliver()
    t.equal(mails.length, name === 'nothing' ? 1 : 0, name)
    const [channel] = store.alertChannels.ofOrganization(organization.id)
    const letters = store.alertChannels.deadLetters(organization.id, channel?.id ?? '')
    t.match(letters, name === 'nothing' ? [] : [{ failure: /no manager or no use any more/ }])
    t.notMatch(JSON.stringify(letters), /heidi|fay/, 'a dead letter contains no person')
  }
})

t.test('a message that waits is sent after the erasure of a person of another group', async (t) => {
  const { administration, organization, clock, mails, notify, deliver } = await made(t)
  notify(['Board'])
  administration.persons.erase(organization, ['ada'])
  await deliver()
  t.equal(mails.length, 0, 'not while clients are being erased')
  for (const _step of administration.organizations.eraseClients(organization));
  clock.add(HOUR_MS)
  await deliver()
  t.match(mails, [{ to: ['heidi@acme.example'] }])
})

t.test('a dead letter does not repeat the address of a manager that a mail server refused', async (t) => {
  const site = await made(t, {
    server: {
      onRcptTo: ({ address }, _session, done) =>
        done(Object.assign(new Error(`<${address}>: no such mailbox`), { responseCode: 550 })),
    },
  })
  site.notify(['Board'])
  await site.deliver()
  const [channel] = site.store.alertChannels.ofOrganization(site.organization.id)
  const letters = site.store.alertChannels.deadLetters(site.organization.id, channel?.id ?? '')
  t.match(letters, [{ failure: /no such mailbox/ }])
  t.notMatch(JSON.stringify(letters), /heidi/)
})

t.test('mails to managers are refused', async (t) => {
  const site = await made(t)
  const { administration, organization, clock, notify, store } = site
  t.throws(() => notify([]), { code: 'CONFLICT', message: /no group that uses Claude has a manager/ })
  t.throws(() => notify(['Sales']), { code: 'CONFLICT', message: /changed meanwhile/ })
  for (const text of ['', ' \n ', 'a\u0007', 'a\u202eb', 'x'.repeat(4097)])
    t.throws(() => notify(['Board'], text), { code: 'USAGE', message: /text: expected 1 to 4096 bytes/ })
  t.throws(() => notify(['Board'], TEXT, 'none'), {
    code: 'USAGE',
    message: /alert channel that sends the mails: mail/,
  })
  administration.members.add(organization, 'm', 'member')
  const asMember = new Administration(store, clock, { kind: 'member', name: 'm' })
  const range = lastDaysOf(30, clock.nowMs())
  const mails = { platform: CLAUDE, groups: ['Board'], range, text: TEXT, channel: undefined }
  t.throws(() => asMember.managers.notifyManagers(organization, mails), { code: 'NOT_ALLOWED' })
  notify(['Board'])
  t.throws(() => notify(['Board']), { code: 'CONFLICT', message: /less than an hour ago/ })
  clock.add(HOUR_MS + 1)
  notify(['Board'])
  administration.alerts.removeChannel(organization, 'mail')
  clock.add(HOUR_MS + 1)
  t.throws(() => notify(['Board']), { code: 'NOT_FOUND', message: /no alert channel sends mail/ })
  administration.organizations.set(organization, { clients: 'off' })
  t.throws(() => notify(['Board']), { code: 'CONFLICT', message: /has no groups/ })
})

t.test('the command lists the groups of a platform, and mails their managers', async (t) => {
  const { directory, deliver, mails } = await made(t)
  const notify = ['platform', 'notify-managers', 'Claude', '--data-dir', directory]
  const finance = { name: 'Finance', manager: 'grace@acme.example', people: 2 }
  const board = { name: 'Board', manager: 'heidi@acme.example', people: 1 }
  t.match(await admin(...notify, '--dry-run'), [finance, board, { name: 'Sales', manager: null }])
  t.same(await admin(...notify), [finance, board])
  await deliver()
  const organization = { name: 'Acme' } as Organization
  for (const { text } of mails) t.match(decoded(text), managerText(organization, 'Claude', 'waiting').slice(0, 60))
  t.match(await runAdmin(notify), { stderr: /less than an hour ago/ })
})
