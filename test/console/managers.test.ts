import t from 'tap'
import { Administration } from '../../engine/admin/administration.ts'
import { checkedChannel } from '../../engine/admin/alert-settings.ts'
import { sealedChannel } from '../../engine/admin/alerts.ts'
import { readGroups, storedGroups } from '../../engine/admin/client-groups.ts'
import { SecretsKey, secretsKeyFile } from '../../engine/kernel/process/secrets-key.ts'
import { serveConsole, type TestConsole } from '../support/console.ts'
import { Sender, scanEvents } from '../support/store.ts'

const PATH = '/platforms/DeepSeek/managers'

/** Use by people in groups with and without a manager. */
async function made(site: TestConsole): Promise<void> {
  const { store, clock, organization } = site
  const sender = new Sender()
  const events = ['ada', 'bob', 'eve'].map((user) => sender.event('chat.deepseek.com', clock.nowMs(), { user }))
  scanEvents(site, organization, events)
  const groups = readGroups('ada,Finance,grace@acme.example\nbob,Finance\neve,R&D <b>\n', 'groups')
  new Administration(store, clock).clientGroups.replace(organization, await storedGroups(store, organization, groups))
}

function addMailChannel({ store, clock, directory, organization }: TestConsole, name: string): void {
  const mail = { kind: 'smtp', host: 'mail.acme.example', from: 'posture@acme.example', to: ['soc@acme.example'] }
  const checked = checkedChannel({ ...mail, kind: 'smtp' })
  if (checked.kind === 'invalid') throw new Error(JSON.stringify(checked.faults))
  const key = new SecretsKey(secretsKeyFile('', directory))
  const channel = sealedChannel(key, organization, { name, severityMin: 'low', settings: checked.settings })
  new Administration(store, clock).alerts.addChannel(organization, channel)
}

t.test('the managers of the groups that use a platform get a mail with the text of the form', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get(PATH)).text, /No group used DeepSeek/)
  await made(site)
  t.match((await admin.get('/platforms/DeepSeek')).text, `href="${PATH}">Notify managers<`)
  const page = (await admin.get(PATH)).text
  t.match(page, /1 manager of 2 groups.*Finance<.*grace@acme\.example<.*R&amp;D &lt;b>.*none</s)
  t.match(page, /No alert channel sends mail/)
  addMailChannel(site, 'mail')
  const form = (await admin.get(PATH)).text
  t.match(
    form,
    /Hello,\n\nPeople in your group use DeepSeek, an AI service which Acme has not approved\..*Send 1 Mail</s,
  )
  t.notMatch(form, /name="channel"/)
  const receivers = /name="receivers" value="([^"]+)"/.exec(form)?.[1] ?? ''
  const refused = await admin.post(PATH, { receivers, text: 'a\u0007<b>' })
  t.equal(refused.status, 400)
  t.match(refused.text, /role="alert">\s*text: expected.*a.&lt;b>/s)
  t.match(await admin.post(PATH, { text: 'Ask them.' }), { status: 409, text: /managers have changed meanwhile/ })
  t.match(await admin.post(PATH, { receivers, text: 'Ask them.' }), {
    ...{ status: 303, headers: { location: `${PATH}?done=sent` } },
  })
  const sent = (await admin.get(`${PATH}?done=sent`)).text
  t.match(sent, /The mails are being sent.*Sent last.*By a, through mail, to the managers of Finance\./s)
  t.match(await admin.post(PATH, { receivers, text: 'Again.' }), { status: 409, text: /less than an hour ago/ })
  const [channel] = store.alertChannels.ofOrganization(organization.id)
  t.match(JSON.parse(store.alertChannels.first(organization.id, channel?.id ?? '')?.json ?? ''), {
    ...{ type: 'manager', group: 'Finance', text: 'Ask them.', platform: { id: 'deepseek', name: 'DeepSeek' } },
  })
  const others = readGroups('ada,Finance,heidi@acme.example\nbob,Finance\neve,R&D <b>,ivan@acme.example\n', 'groups')
  new Administration(store, site.clock).clientGroups.replace(
    organization,
    await storedGroups(store, organization, others),
  )
  t.match(await admin.post(PATH, { receivers, text: 'Again.' }), {
    status: 409,
    text: /managers have changed meanwhile/,
  })
  addMailChannel(site, 'other')
  t.match((await admin.get(PATH)).text, /<select id="channel" name="channel">.*>mail<.*>other</s)
  t.equal((await admin.get('/platforms/None/managers')).status, 404)
  const member = site.signIn('m', 'member')
  t.equal((await member.get(PATH)).status, 403)
  t.equal((await member.post(PATH, { text: 'Ask them.' })).status, 403)
  t.notMatch((await member.get('/platforms/DeepSeek')).text, /Notify managers/)
})
