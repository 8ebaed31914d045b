import t from 'tap'
import { loadCatalog } from '../../registry/catalog.ts'
import { catalogStats, Lookup } from '../../registry/lookup.ts'
import { PLATFORM_TYPES } from '../../registry/platform-type.ts'

const catalog = loadCatalog()
const lookup = new Lookup(catalog)

t.test('check finds the platform and the rule of a name', async (t) => {
  const cases: { host: string; platform?: string; domain?: string }[] = [
    { host: 'chatgpt.com', platform: 'chatgpt', domain: 'chatgpt.com' },
    { host: 'WWW.ChatGPT.com.', platform: 'chatgpt', domain: 'chatgpt.com' },
    { host: 'chat.openai.com', platform: 'chatgpt', domain: 'chat.openai.com' },
    { host: 'help.x.openai.com', platform: 'openai-api', domain: 'openai.com' },
    { host: 'api.anthropic.com', platform: 'anthropic-api', domain: 'api.anthropic.com' },
    {
      host: 'bedrock-runtime.us-east-1.amazonaws.com',
      platform: 'aws-bedrock',
      domain: 'bedrock-runtime.*.amazonaws.com',
    },
    { host: 'some-app.lovable.app', platform: 'lovable', domain: '*.lovable.app' },
    { host: 'amazonaws.com' },
    { host: 's3.us-east-1.amazonaws.com' },
    { host: 'www.google.com' },
    { host: 'fonts.googleapis.com' },
    { host: 'x.com' },
    { host: 'github.com' },
    { host: 'notopenai.com' },
    { host: '' },
    { host: '10.0.0.1' },
    { host: 'ch\u00e4t.openai.com' },
  ]
  for (const { host, platform, domain } of cases) {
    const rule = lookup.check(host)
    t.same([rule?.platform.id, rule?.domain], [platform, domain], JSON.stringify(host))
  }
})

t.test('background hosts belong to no platform', async (t) => {
  const everyday = `google.com www.google.com accounts.google.com mail.google.com clients4.google.com youtube.com www.gstatic.com
    fonts.gstatic.com ssl.gstatic.com googleapis.com storage.googleapis.com oauth2.googleapis.com play.googleapis.com
    firebaselogging-pa.googleapis.com geller-pa.googleapis.com proactivebackend-pa.googleapis.com lh3.googleusercontent.com
    microsoft.com login.microsoftonline.com outlook.office.com substrate.office.com graph.microsoft.com teams.microsoft.com
    settings-win.data.microsoft.com bing.com www.bing.com mystorage.blob.core.windows.net x.azureedge.net dev.azure.com
    apple.com icloud.com gateway.icloud.com mesu.apple.com facebook.com graph.facebook.com meta.com instagram.com whatsapp.com
    x.com twitter.com t.co amazon.com ec2.us-east-1.amazonaws.com bucket.s3.eu-west-1.amazonaws.com d1.cloudfront.net
    github.com api.github.com raw.githubusercontent.com objects.githubusercontent.com gitlab.com npmjs.com registry.npmjs.org pypi.org
    cloudflare.com api.cloudflare.com cdnjs.cloudflare.com workers.dev fastly.net akamaihd.net sentry.io o1.ingest.sentry.io
    api.statsig.com tenant.auth0.com widget.intercom.io js.stripe.com slack.com zoom.us salesforce.com adobe.com oracle.com ibm.com
    baidu.com www.baidu.com qq.com weixin.qq.com aliyun.com oss-cn-hangzhou.aliyuncs.com yandex.ru mail.ru vk.com bilibili.com
    wikipedia.org reddit.com stackoverflow.com linkedin.com netflix.com spotify.com tiktok.com brave.com mozilla.org nvidia.com`
  for (const host of everyday.split(/\s+/)) t.equal(lookup.check(host)?.platform.id, undefined, host)
})

t.test('search finds platforms by part of a name', async (t) => {
  const ids = (text: string) => lookup.search(text).map(({ id }) => id)
  t.equal(ids('Claude')[0], 'claude', 'names first')
  t.ok(ids('ANTHROPIC').includes('claude'), 'by vendor, in any case')
  t.ok(ids('pplx.ai').includes('perplexity'), 'by domain')
  t.ok(ids('code assistant').includes('cursor'), 'by category')
  t.same(ids('no such platform'), [])
  t.same(ids('  '), [], 'an empty search finds nothing')
})

t.test('show lists a platform', async (t) => {
  t.equal(lookup.show('deepseek')?.vendor, 'DeepSeek')
  t.equal(lookup.show('nobody'), undefined)
})

t.test('stats add up', async (t) => {
  const stats = catalogStats(catalog)
  const sum = (counts: Iterable<number>) => [...counts].reduce((total, count) => total + count, 0)
  t.equal(stats.platforms, catalog.platforms.length)
  t.equal(stats.domains, catalog.rules.length)
  t.equal(sum(Object.values(stats.byMatch)), stats.domains)
  t.equal(sum(Object.values(stats.byRole)), stats.domains)
  t.equal(sum(Object.values(stats.byType).map(({ platforms }) => platforms)), stats.platforms)
  t.equal(sum(Object.values(stats.byType).map(({ domains }) => domains)), stats.domains)
  t.same(Object.keys(stats.byType), Object.keys(PLATFORM_TYPES))
})
