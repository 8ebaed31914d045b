import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { EXAMPLE } from '../../../deploy/docs/page-tables.ts'
import { openSettings, secretsOf } from '../../../engine/alert/channel-settings.ts'
import { testMessage } from '../../../engine/alert/message.ts'
import { payloadSchema } from '../../../engine/alert/payload.ts'
import { answerText } from '../../../engine/alert/send-outcome.ts'
import { makeWebhookSecret, signedFields } from '../../../engine/alert/webhook-signature.ts'
import { alertSite, webhookReceiver } from '../../support/alerts.ts'
import { REPOSITORY } from '../../support/programs.ts'

/** The languages of the programs in the page, each with its file and the command that runs it. */
const PROGRAMS = [
  ['js', 'verify.mjs', process.execPath],
  ['python', 'verify.py', 'python3'],
] as const
const PAGE = readFileSync(join(REPOSITORY, 'docs/reference/alerts.md'), 'utf8')

function programOf(language: string): string {
  const found = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(PAGE)?.[1]
  if (found === undefined) throw new Error(`the page has no program in ${language}`)
  return found
}

t.test('the documented programs accept the signatures of the service, and nothing else', async (t) => {
  const directory = t.testdir()
  const secret = makeWebhookSecret()
  const body = JSON.stringify(EXAMPLE)
  const nowMs = Date.now()
  for (const [language, name, command] of PROGRAMS) {
    const file = join(directory, name)
    writeFileSync(file, programOf(language))
    const status = (fields: Record<string, string>, input: string, key = secret): number | null => {
      const values = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => fields[name] ?? '')
      return spawnSync(command, [file, key, ...values], { input }).status
    }
    const fields = signedFields(secret, EXAMPLE.id, nowMs, body)
    t.equal(status(fields, body), 0, `${language}: valid`)
    t.equal(
      status({ ...fields, 'webhook-signature': `v1,AAAA ${fields['webhook-signature']}` }, body),
      0,
      `${language}: two`,
    )
    t.equal(status(fields, `${body} `), 1, `${language}: another body`)
    t.equal(status(fields, body, makeWebhookSecret()), 1, `${language}: another secret`)
    t.equal(status({ ...fields, 'webhook-id': 'x' }, body), 1, `${language}: another id`)
    const old = signedFields(secret, EXAMPLE.id, nowMs - 600_000, body)
    t.equal(status(old, body), 1, `${language}: an old time`)
  }
})

t.test('messages have the documented form', async (t) => {
  const receiver = await webhookReceiver(t)
  const site = alertSite(t)
  const channel = site.addChannel({ kind: 'webhook', url: receiver.url })
  site.administration.alerts.setThreshold(site.organization, 'unapproved-platform', 0)
  site.scan(['claude.ai', 'chatgpt.com'])
  site.evaluate()
  await site.deliver()
  const [post] = receiver.received
  t.same(payloadSchema.parse(post?.message), post?.message)
  t.same(payloadSchema.parse(EXAMPLE), EXAMPLE)
  const test = testMessage(site.organization, channel, 'a'.repeat(32), site.clock.nowMs())
  t.same(payloadSchema.parse(test), test)
})

t.test('the stored settings of a channel are encrypted, for this channel only', async (t) => {
  const site = alertSite(t)
  const url = 'https://alerts.example/T0/secret-path'
  const first = site.addChannel({ kind: 'slack', url })
  const second = site.addChannel({ kind: 'webhook', url: 'https://other.example/' })
  t.notMatch(JSON.stringify(first), /secret-path/)
  t.match(openSettings(site.secrets, first), { kind: 'slack', url })
  t.throws(() => openSettings(site.secrets, { ...second, settings: first.settings }), { code: 'SECRETS_KEY' })
  const audit = JSON.stringify(site.store.auditLog.ofOrganization(site.organization.id))
  t.match(audit, /alert-channel\.add/)
  t.notMatch(audit, /secret-path|whsec_/)
})

t.test('what a receiver said contains no part of the secrets of its channel', async (t) => {
  const url = 'https://hooks.example.com/services/T0000%20token/B1111secret?key=abcdefgh12345678&x=1'
  const mail = { host: 'mail.example', port: 25, tls: 'starttls', from: 'a@b.example', to: [], ca: '' } as const
  const plain = Buffer.from('\0posture\0long password').toString('base64')
  const rows = [
    { settings: { kind: 'slack', url, ca: '' }, said: `no ${url} here` },
    { settings: { kind: 'slack', url, ca: '' }, said: 'unknown token T0000%20token' },
    { settings: { kind: 'slack', url, ca: '' }, said: 'unknown token T0000 token' },
    { settings: { kind: 'teams', url, ca: '' }, said: 'key abcdefgh12345678 of B1111secret has expired' },
    { settings: { ...mail, kind: 'smtp', user: 'posture', password: 'long password' }, said: `AUTH PLAIN ${plain}` },
    { settings: { ...mail, kind: 'smtp', user: 'posture', password: 'long password' }, said: 'wrong long password' },
  ] as const
  for (const { settings, said } of rows) {
    const shown = answerText(said, secretsOf(settings))
    t.match(shown, /\[secret\]/)
    t.notMatch(shown, /T0000|B1111|abcdefgh|password|AHBvc3/, said)
  }
})
