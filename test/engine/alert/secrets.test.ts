import t from 'tap'
import { type ChannelSettings, secretsOf } from '../../../engine/alert/channel-settings.ts'
import { answerText } from '../../../engine/alert/send-outcome.ts'
import { alertSite, webhookReceiver } from '../../support/alerts.ts'
import { smtpServer } from '../../support/smtp-server.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')

const url = 'https://hooks.example.com/services/T0001/xoxb%20secret1?token=query+secret2&empty=&sig=a%2Fb%3Dc'
const chat: ChannelSettings = { kind: 'slack', url, ca: '' }
const webhook: ChannelSettings = { kind: 'webhook', url, ca: '', secret: 'whsec_c2VjcmV0LW9mLXdlYmhvb2s=' }
const mail: ChannelSettings = {
  kind: 'smtp',
  host: 'mail.example.com',
  port: 465,
  tls: 'implicit',
  user: 'posture',
  password: 'pass-word1',
  from: 'posture@acme.example',
  to: ['soc@acme.example'],
  ca: '',
}

for (const { name, settings, said } of [
  { name: 'the URL', settings: chat, said: url },
  { name: 'its path', settings: chat, said: '/services/T0001/xoxb%20secret1' },
  { name: 'a segment of its path', settings: chat, said: 'no hook xoxb%20secret1 here' },
  { name: 'a decoded segment', settings: chat, said: 'no hook xoxb secret1 here' },
  { name: 'a query value', settings: chat, said: 'token=query+secret2' },
  { name: 'a decoded query value', settings: chat, said: 'the token "query secret2" is wrong' },
  { name: 'a query value, encoded by the rules of a segment', settings: chat, said: 'query%20secret2' },
  { name: 'a query value with characters that JSON and HTML escape', settings: chat, said: '{"sig":"a\\/b=c"} a/b=c' },
  { name: 'the signing secret', settings: webhook, said: 'whsec_c2VjcmV0LW9mLXdlYmhvb2s=' },
  { name: 'the signing key without its prefix', settings: webhook, said: 'key c2VjcmV0LW9mLXdlYmhvb2s' },
  { name: 'a path to a webhook', settings: webhook, said: 'POST xoxb%20secret1' },
  { name: 'the password', settings: mail, said: '535 pass-word1' },
  { name: 'the password of AUTH LOGIN', settings: mail, said: `535 ${base64('pass-word1')}` },
  { name: 'AUTH PLAIN', settings: mail, said: `535 AUTH PLAIN ${base64('\0posture\0pass-word1')}` },
  { name: 'AUTH PLAIN with an identity', settings: mail, said: `535 ${base64('posture\0posture\0pass-word1')}` },
  { name: 'AUTH PLAIN without padding', settings: mail, said: base64('\0posture\0pass-word1').replace(/=+$/, '') },
]) {
  t.test(`${name} is replaced in what a receiver says`, async (t) => {
    const text = answerText(said, secretsOf(settings))
    t.match(text, /\[secret\]/)
    const kept = ['secret1', 'secret2', 'a/b=c', 'a\\/b', 'c2VjcmV0', 'pass-word1', base64('pass-word1').slice(0, 8)]
    for (const part of kept) t.notOk(text.includes(part), text)
    t.notOk(text.includes(said.slice(4)), text)
  })
}

t.test('the status line, the state of the channel and dead letters show no part of the URL', async (t) => {
  const receiver = await webhookReceiver(t)
  const site = alertSite(t)
  receiver.answer = ({ path }) => ({
    status: 422,
    reason: `no hook ${path.split('/').at(-1)}`,
    body: `unknown: ${path}`,
  })
  const channel = site.addChannel({ kind: 'slack', url: `${receiver.url}/hidden-segment?key=hidden-value` })
  site.scan(['claude.ai'])
  site.evaluate()
  await site.deliver()
  const { alertChannels } = site.store
  const state = alertChannels.state(site.organization.id, channel.id)
  const letters = alertChannels.deadLetters(site.organization.id, channel.id)
  t.equal(letters.length, 1)
  t.match(state.failure, /^422 no hook \[secret\]/)
  t.notMatch(JSON.stringify([state, letters]), /hidden-/)
})

t.test('a mail server that repeats AUTH PLAIN shows no password', async (t) => {
  const site = alertSite(t)
  const { port, ca } = await smtpServer(t, site.directory, {
    secure: true,
    authMethods: ['PLAIN'],
    onAuth: ({ username, password }, _session, done) => {
      done(Object.assign(new Error(`wrong: ${base64(`\0${username}\0${password}`)}`), { responseCode: 535 }))
    },
  })
  const settings = { kind: 'smtp', host: 'localhost', from: mail.from, to: mail.to, user: 'posture', tls: 'implicit' }
  const channel = site.addChannel({ ...settings, kind: 'smtp', port, ca, password: 'pass-word1' })
  site.scan(['claude.ai'])
  site.evaluate()
  await site.deliver()
  const { failure } = site.store.alertChannels.state(site.organization.id, channel.id)
  t.match(failure, /535.*wrong: \[secret\]/)
})
