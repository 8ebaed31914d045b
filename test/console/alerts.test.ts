import t from 'tap'
import { AlertEvaluator } from '../../engine/alert/evaluator.ts'
import { MINUTE_MS } from '../../engine/kernel/process/clock.ts'
import { ALERT_CHANNELS_MAX } from '../../engine/limits.ts'
import { webhookReceiver } from '../support/alerts.ts'
import { type Browser, LOOPBACK, scanWith, serveConsole, type TestConsole } from '../support/console.ts'
import { registries } from '../support/store.ts'

const SECRET = /whsec_[A-Za-z0-9+/=]+/
const SLACK_URL = 'https://hooks.slack.example/services/T0/B0/hidden-part'

const channelsOf = ({ store, organization }: TestConsole) => store.alertChannels.ofOrganization(organization.id)
const actionsOf = ({ store, organization }: TestConsole) =>
  store.auditLog.ofOrganization(organization.id).map(({ action }) => action)

function addWebhook(browser: Browser, url: string, name = 'soc') {
  return browser.submit('/alerts/channels/new', { kind: 'webhook', name, url, severityMin: 'low' })
}

t.test('a webhook is added: its signing secret is shown once, its URL never', async (t) => {
  const site = await serveConsole(t)
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get('/alerts')).text, /Alerts are sent nowhere yet.*No alert yet/s)
  t.match((await admin.get('/alerts/channels')).text, /No channel/)
  t.match((await admin.get('/alerts/channels/new?kind=webhook')).text, /name="url"/)
  const answer = await addWebhook(admin, 'https://alerts.example/hidden-part')
  t.match(answer, { status: 200, headers: { 'cache-control': 'no-store', 'content-encoding': undefined } })
  const [secret = ''] = SECRET.exec(answer.text) ?? []
  t.ok(secret.length > 40)
  t.match(answer.text, 'https://alerts.example,')
  for (const path of ['/alerts', '/alerts/channels', '/alerts/channels.csv', '/audit-log']) {
    const { text } = await admin.get(path)
    t.notOk(text.includes(secret) || text.includes('hidden-part'), path)
  }
  t.same(actionsOf(site), ['alert-channel.add'])
  t.match(channelsOf(site), [{ name: 'soc', kind: 'webhook', severityMin: 'low' }])
})

t.test('Slack, mail and syslog are added; what is wrong is said at its field, without the secrets', async (t) => {
  const site = await serveConsole(t)
  const admin = site.signIn('a', 'admin')
  const add = (fields: Readonly<Record<string, string>>) =>
    admin.post('/alerts/channels/new', { severityMin: 'medium', ...fields })
  t.equal((await add({ kind: 'slack', name: 'chat', url: SLACK_URL })).status, 303)
  const mail = { kind: 'smtp', name: 'mail', host: 'mail.acme.example', from: 'posture@acme.example' }
  t.equal((await add({ ...mail, to: 'soc@acme.example\r\nada@acme.example' })).status, 303)
  t.equal((await add({ kind: 'syslog', name: 'siem', host: 'siem.acme.example', port: '7000' })).status, 303)
  t.same(
    channelsOf(site).map(({ target }) => target),
    [
      'https://hooks.slack.example',
      'soc@acme.example, ada@acme.example by mail.acme.example:587',
      'tls://siem.acme.example:7000 (cef)',
    ],
  )
  const cases = [
    [{ kind: 'slack', name: 'kept', url: 'hidden-part' }, /Expected a URL/],
    [{ kind: 'slack', name: 'kept', url: 'http://hooks.slack.example/hidden-part' }, /Expected https/],
    [{ kind: 'teams', name: 'kept' }, /The URL is required/],
    [{ ...mail, name: 'kept', to: 'nobody' }, /Expected a mail address/],
    [{ ...mail, name: 'kept', to: 'a@acme.example', password: 'hidden-part' }, /Set both user and password/],
    [{ kind: 'syslog', name: 'kept', host: 'a b' }, /Expected a host name/],
    [
      { kind: 'teams', name: 'kept', url: 'https://10.0.0.1/hidden-part' },
      /10\.0\.0\.1 is on this machine or in a local/,
    ],
    [{ kind: 'syslog', name: 'kept', host: 'fd00::1' }, /fd00::1 is on this machine or in a local/],
    [{ kind: 'syslog', name: 'kept', host: 'siem', port: '99999' }, /from 1 to 65535/],
    [{ kind: 'syslog', name: 'kept', host: 'siem', ca: 'no PEM' }, /certificates in PEM/],
    [{ kind: 'slack', name: 'kept', url: SLACK_URL, severityMin: 'none' }, /Choose a severity/],
  ] as const
  for (const [fields, message] of cases) {
    const { status, text } = await add(fields)
    t.equal(status, 400, JSON.stringify(fields))
    t.match(text, message)
    t.match(text, /value="kept"/)
    t.notMatch(text, /hidden-part/)
  }
  t.match(await add({ kind: 'slack', name: 'CHAT', url: SLACK_URL }), { status: 409, text: /already exists/ })
  t.match(await add({ kind: 'slack', name: ' ', url: SLACK_URL }), { status: 400, text: /Enter a name/ })
  while (channelsOf(site).length < ALERT_CHANNELS_MAX) {
    await add({ kind: 'slack', name: `chat ${channelsOf(site).length}`, url: SLACK_URL })
  }
  t.match((await admin.get('/alerts/channels')).text, /10 channels are the limit/)
  t.equal((await add({ kind: 'slack', name: 'more', url: SLACK_URL })).status, 409)
})

t.test('after ten minutes, the form opens with a confirmation, before a secret is typed', async (t) => {
  const site = await serveConsole(t)
  const admin = site.signIn('a', 'admin')
  t.match((await admin.post('/alerts/channels/open', { kind: 'smtp' })).headers, {
    location: '/alerts/channels/new?kind=smtp',
  })
  site.clock.add(11 * MINUTE_MS)
  const { text } = await admin.get('/alerts/channels/new?kind=slack')
  t.match(text, /action="\/alerts\/channels\/open".*name="kind" value="slack"/s)
  t.notMatch(text, /name="url"/)
  const asked = await admin.submit('/alerts/channels/new', { kind: 'slack', name: 'chat', url: SLACK_URL })
  t.notMatch(asked.text, /hidden-part/)
  t.same(channelsOf(site), [])
})

t.test('a test message reaches the receiver; a refused one says why; each is in the audit log', async (t) => {
  const receiver = await webhookReceiver(t)
  const site = await serveConsole(t)
  const admin = site.signIn('a', 'admin')
  await addWebhook(admin, receiver.url)
  const path = `/alerts/channels/${channelsOf(site)[0]?.id}/test`
  t.match((await admin.submit(path)).text, /Test message delivered to soc/)
  t.match(receiver.received, [{ message: { type: 'test', organization: { name: 'Acme' } } }])
  receiver.answer = () => ({ status: 403, body: 'go away' })
  t.match((await admin.submit(path)).text, /soc did not get the test message.*403.*go away/s)
  t.same(actionsOf(site), ['alert-channel.add', 'alert-channel.test', 'alert-channel.test'])
})

t.test('one test at a time for each organization', async (t) => {
  const receiver = await webhookReceiver(t)
  const site = await serveConsole(t)
  const admin = site.signIn('a', 'admin')
  await addWebhook(admin, receiver.url)
  const path = `/alerts/channels/${channelsOf(site)[0]?.id}/test`
  let second: ReturnType<typeof admin.post> | undefined
  receiver.answer = () => {
    receiver.answer = () => ({ status: 204 })
    second = admin.submit(path)
    return { status: 204, after: second }
  }
  const first = await admin.submit(path)
  t.match(await second, { status: 503 })
  t.match(first.text, /Test message delivered to soc/)
  t.match((await admin.submit(path)).text, /Test message delivered to soc/)
})

t.test('a receiver in a private network is refused unless the operator allows the network', async (t) => {
  const receiver = await webhookReceiver(t)
  const site = await serveConsole(t, { outboundNetworks: [] })
  const admin = site.signIn('a', 'admin')
  const refused = await addWebhook(admin, receiver.url)
  t.match(refused, { status: 400, text: /is on this machine or in a local or private network/ })
  // As SIGHUP does after a change of --outbound-networks.
  site.allowOutbound(LOOPBACK)
  await addWebhook(admin, receiver.url)
  site.allowOutbound([])
  const answer = await admin.submit(`/alerts/channels/${channelsOf(site)[0]?.id}/test`)
  t.match(answer.text, /did not get the test message/)
  t.same(receiver.received, [])
  site.allowOutbound(LOOPBACK)
  t.match((await admin.submit(`/alerts/channels/${channelsOf(site)[0]?.id}/test`)).text, /Test message delivered to/)
})

t.test('alerts are listed with their delivery; dead letters are sent again and deleted', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  const { id } = organization
  const admin = site.signIn('a', 'admin')
  await addWebhook(admin, 'https://alerts.example/a')
  scanWith(site, ['chat.deepseek.com', 'claude.ai'])
  new AlertEvaluator(store, registries, clock).evaluate(id)
  const channelId = channelsOf(site)[0]?.id ?? ''
  t.match(
    (await admin.get('/alerts')).text,
    /href="\/platforms\/DeepSeek"[^>]*>DeepSeek.*soc <span class="tag warn">waiting/s,
  )
  const fail = () =>
    store.environment.write(() => {
      for (;;) {
        const message = store.alertChannels.first(id, channelId)
        if (message === undefined) return
        store.alertChannels.postpone(id, channelId, '410 Gone', clock.nowMs())
        store.alertChannels.fail(id, channelId, message.sequence, '410 Gone', clock.nowMs())
      }
    })
  fail()
  t.match((await admin.get('/alerts')).text, /dead letter<\/span>/)
  t.match((await admin.get('/alerts/channels')).text, /failing<\/span>.*2 dead letters.*410 Gone/s)
  const letters = () => store.alertChannels.deadLetters(id, channelId)
  const [first, second] = letters()
  t.match((await admin.get('/alerts/dead-letters')).text, /soc: 410 Gone/)
  const retry = `/alerts/channels/${channelId}/retry`
  t.equal((await admin.post(retry, { number: String(first?.sequence) })).status, 303)
  t.same(
    letters().map(({ sequence }) => sequence),
    [second?.sequence],
  )
  t.equal((await admin.post(retry, { number: '99' })).status, 404)
  t.equal((await admin.post(retry, { number: 'x' })).status, 400)
  fail()
  t.equal((await admin.post(`/alerts/channels/${channelId}/discard`, { number: String(second?.sequence) })).status, 303)
  t.equal((await admin.post(retry)).status, 303)
  t.match((await admin.get('/alerts/dead-letters')).text, /No dead letter/)
  const rows = await admin.rows('/alerts.csv?severity=high')
  t.match(rows, [{ Severity: 'high', Rule: 'unapproved-platform' }])
  t.match((await admin.get('/alerts?rule=score-fell')).text, /No alert matches/)
  t.equal((await admin.post(`/alerts/channels/${channelId}/remove`)).status, 303)
  t.match((await admin.get('/alerts')).text, /channel removed/)
  t.same(actionsOf(site).slice(1), ['alert.retry', 'alert.discard', 'alert.retry', 'alert-channel.remove'])
})

t.test('rules are muted and their thresholds set; a wrong threshold is refused', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const admin = site.signIn('a', 'admin')
  const rules = () => store.alerts.rules(organization.id)
  const set = (rule: string, threshold: string) => admin.post(`/alerts/rules/${rule}`, { threshold })
  t.equal((await set('unapproved-platform', '60')).status, 303)
  t.match((await admin.get('/alerts/rules')).text, /value="60".*default 70/s)
  t.match(await set('unapproved-platform', '101'), { status: 400, text: /from 0 to 100, found 101.*value="101"/s })
  t.match(await set('unapproved-platform', '-1'), { status: 400, text: /expected a whole number/ })
  t.match(await set('new-platform', '1'), { status: 400, text: /has no threshold/ })
  t.equal((await set('nothing', '1')).status, 404)
  t.equal((await admin.post('/alerts/rules/source-silent/mute')).status, 303)
  t.same(rules(), { 'unapproved-platform': { threshold: 60 }, 'source-silent': { muted: true } })
  t.match(
    (await admin.get('/alerts/rules?done=muted')).text,
    /The rule is muted.*action="\/alerts\/rules\/source-silent\/unmute"/s,
  )
  t.equal((await admin.post('/alerts/rules/source-silent/unmute')).status, 303)
  t.equal((await set('unapproved-platform', '')).status, 303)
  t.same(rules(), { 'unapproved-platform': {}, 'source-silent': { muted: false } })
  t.same(actionsOf(site), ['alert-rule.set', 'alert-rule.mute', 'alert-rule.unmute', 'alert-rule.set'])
  const rows = await admin.rows('/alerts/rules.csv')
  t.match(rows[1], { Rule: 'unapproved-platform', Threshold: '70', State: 'active' })
})
