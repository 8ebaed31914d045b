import t from 'tap'
import { type CandidateSignal, candidateOf, KnownSites, scoreOf } from '../../registry/candidate-names.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { canonicalName } from '../../registry/domain-name.ts'
import * as fc from '../support/property.ts'

const cases: readonly { name: string; host: string; candidate?: string; signals?: readonly CandidateSignal[] }[] = [
  { name: 'a site below .ai', host: 'acme.ai', candidate: 'acme.ai', signals: ['ai_domain'] },
  { name: 'a host of it counts for the site', host: 'api.eu.acme.ai', candidate: 'acme.ai', signals: ['ai_domain'] },
  { name: 'the word in a site', host: 'www.acme-ai.com', candidate: 'acme-ai.com', signals: ['ai_word'] },
  { name: 'the word as a label of a host', host: 'ai.acme.com', candidate: 'ai.acme.com', signals: ['ai_word'] },
  { name: 'a term in a site', host: 'chatgpt-free.example', candidate: 'chatgpt-free.example', signals: ['ai_term'] },
  { name: 'a term in a host', host: 'llm.acme.com', candidate: 'llm.acme.com', signals: ['ai_term'] },
  {
    name: 'a term below a shared host',
    host: 'my-gpt.vercel.app',
    candidate: 'my-gpt.vercel.app',
    signals: ['ai_term'],
  },
  { name: 'a site below a second level', host: 'x.acme-ai.co.uk', candidate: 'acme-ai.co.uk', signals: ['ai_word'] },
  { name: 'two signals', host: 'copilot.acme-llm.ai', candidate: 'acme-llm.ai', signals: ['ai_domain', 'ai_term'] },
  { name: 'no sign', host: 'www.example.com' },
  { name: 'the letters inside words', host: 'mail.dubai-airport.com' },
  { name: 'the letters at an end', host: 'shanghai.com' },
  { name: 'the word below a shared host, which is another product there', host: 'ai.monitor.azure.com' },
  {
    name: 'a brand in a longer word',
    host: 'gw.claudecn.example',
    candidate: 'claudecn.example',
    signals: ['ai_term'],
  },
  { name: 'a name of people in a word', host: 'claudette.example' },
  { name: 'advertising below .ai', host: 'sync.acme.ai' },
  { name: 'an advertiser below .ai', host: 'smartads.ai' },
  { name: 'downloads are no ads', host: 'downloads.acme.ai', candidate: 'acme.ai', signals: ['ai_domain'] },
  { name: 'a name of one label', host: 'ai' },
]
for (const { name, host, candidate, signals = [] } of cases) {
  t.test(`${candidate === undefined ? 'no candidate' : 'a candidate'}: ${name}`, async (t) => {
    t.same(candidateOf(host), candidate === undefined ? undefined : { name: candidate, signals })
  })
}

t.test('a host that a device calls AI is a candidate, under its site', async (t) => {
  t.same(candidateOf('api.example.com', true), { name: 'example.com', signals: [] })
  t.same(candidateOf('x.vercel.app', true), { name: 'x.vercel.app', signals: [] }, 'a shared host')
  t.equal(candidateOf('ads.example.com', true), undefined, 'advertising')
})

t.test('scores add up to at most 100', async (t) => {
  t.equal(scoreOf([]), 0)
  t.equal(scoreOf(['ai_domain']), 50)
  t.equal(scoreOf(['ai_domain', 'with_ai', 'several_clients']), 75)
  t.equal(scoreOf(['ai_domain', 'ai_term', 'ai_word']), 100)
})

t.test('the registry adds signals for brands and sites that it knows', async (t) => {
  const known = new KnownSites(loadCatalog().rules)
  t.same(known.signalsOf('perplexity.example'), ['known_brand'])
  t.same(known.signalsOf('new.perplexity.ai'), ['known_site'])
  t.same(known.signalsOf('www.example.com'), [])
  t.same(known.signalsOf('x.microsoft.com'), [], 'a shared host is no site')
})

t.test('names alone show at least three in ten hosts of AI platforms', async (t) => {
  const use = loadCatalog().rules.filter(
    ({ match, purpose, specificity }) => match !== 'pattern' && purpose === 'use' && specificity >= 0.6,
  )
  const found = use.filter(({ domain }) => candidateOf(domain) !== undefined)
  t.ok(found.length / use.length >= 0.3, `${found.length} of ${use.length}`)
})

t.test('a candidate is the name or an end of it, whatever the name', async (t) => {
  const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?$/)
  const tops = fc.constantFrom('ai', 'com', 'co.uk', 'vercel.app', 'chat')
  fc.assert(
    fc.property(fc.array(label, { minLength: 1, maxLength: 4 }), tops, (labels, top) => {
      const name = canonicalName(`${labels.join('.')}.${top}`)
      if (name === undefined) return true
      const found = candidateOf(name)
      return (
        found === undefined || ((name === found.name || name.endsWith(`.${found.name}`)) && found.signals.length > 0)
      )
    }),
  )
  t.pass()
})
