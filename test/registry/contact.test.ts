import t from 'tap'
import { loadCatalog, type Rule } from '../../registry/catalog.ts'
import { accessOf, isUseOfAi, useOf } from '../../registry/contact.ts'
import { Lookup } from '../../registry/lookup.ts'
import { PURPOSES, ROLES } from '../../registry/platform.ts'
import { USE_SPECIFICITY_MIN } from '../../registry/platform-type.ts'

const catalog = loadCatalog()
const lookup = new Lookup(catalog)

t.test('hosts that were seen without use have another purpose', async (t) => {
  const cases: readonly (readonly [host: string, purpose: string, platform: string])[] = [
    ['acme.ada.support', 'widget', 'ada'],
    ['sierra.chat', 'widget', 'sierra'],
    ['metrics.decagon.ai', 'widget', 'decagon'],
    ['forethought.ai', 'widget', 'forethought'],
    ['olivia.paradox.ai', 'widget', 'paradox'],
    ['bzr.openai.com', 'pixel', 'chatgpt'],
    ['bzrcdn.openai.com', 'pixel', 'chatgpt'],
    ['copilot.cloud.microsoft', 'background', 'microsoft-365-copilot'],
    ['robinfrontend-pa.googleapis.com', 'background', 'gemini'],
    ['webchannel-robinfrontend-pa.googleapis.com', 'background', 'gemini'],
    ['alice.yandex.ru', 'background', 'yandex-alice'],
    ['alice.yandex.net', 'background', 'yandex-alice'],
    ['suggest.perplexity.ai', 'background', 'perplexity'],
    ['f-log-extension.grammarly.io', 'background', 'grammarly'],
    ['my-shop.lovable.app', 'published', 'lovable'],
    ['my-shop.replit.app', 'published', 'replit'],
    ['claude.ai', 'use', 'claude'],
    ['www.perplexity.ai', 'use', 'perplexity'],
  ]
  for (const [host, purpose, platform] of cases) {
    const rule = lookup.check(host)
    t.match(rule, { purpose, platform: { id: platform } }, host)
    t.equal(rule !== undefined && isUseOfAi(rule), purpose === 'use', host)
  }
})

t.test('only rules for use reach the specificity of use', async (t) => {
  for (const { domain, purpose, specificity } of catalog.rules) {
    if (purpose !== 'use') t.ok(specificity < USE_SPECIFICITY_MIN, domain)
  }
})

t.test('what matches mean follows from the highest specificity that was used, then from blocked ones', async (t) => {
  for (const [specificity, blocked, use] of [
    [0, 0, 'touched'],
    [0, 1, 'blocked'],
    [0.59, 1, 'ai_capable'],
    [0.6, 0, 'ai'],
    [1, 1, 'ai'],
  ] as const) {
    t.equal(useOf({ specificity, blocked }), use, `${specificity} ${blocked}`)
  }
})

t.test('access follows from role and platform, for use only', async (t) => {
  const ruleOf = (id: string): Rule => catalog.rules.find(({ platform }) => platform.id === id) as Rule
  const expected = {
    chatgpt: { web: 'web', app: 'app', api: 'api' },
    cursor: { web: 'web', app: 'app', api: 'tool' },
    ollama: { web: 'web', app: 'app', api: 'tool' },
  }
  for (const [id, byRole] of Object.entries(expected)) {
    for (const role of ROLES) {
      for (const purpose of PURPOSES) {
        const access = purpose === 'use' ? (byRole as Record<string, string>)[role] : undefined
        t.equal(accessOf({ ...ruleOf(id), role, purpose }), access, `${id} ${role} ${purpose}`)
      }
    }
  }
})
