import t from 'tap'
import { hasAiCategory } from '../../../engine/ingest/candidate-table.ts'

const YES: readonly (readonly [device: string, message: string])[] = [
  [
    'FortiGate',
    'type="utm" subtype="webfilter" hostname="new.example" cat=100 catdesc="Artificial Intelligence Technology"',
  ],
  ['FortiGate, application control', 'app="New.Chat" appcat="GenAI" apprisk="medium" hostname="new.example"'],
  ['PAN-OS', '1,2026/11/28 10:00:00,0011,THREAT,url,2817,"new.example/",(9999),artificial-intelligence,informational'],
  [
    'PAN-OS, category list',
    '9999,"new.example/",artificial-intelligence,ai-code-assistant,"low-risk,ai-code-assistant",0x0',
  ],
  [
    'Zscaler',
    '{"url":"new.example/","urlcategory":"Generative AI and ML Applications","urlsupercategory":"User-defined"}',
  ],
  ['Zscaler, tabs', 'reason=Allowed\thostname=new.example\turlcategory=AI and ML Applications\turlclass=Business Use'],
  ['Netskope', '{"hostname":"new.example","category":"Generative AI","activity":"Browse"}'],
  [
    'Umbrella',
    '"2026-11-28 10:00:00","ada","ada","10.0.0.1","203.0.113.7","Allowed","1 (A)","NOERROR","new.example.","Software/Technology,Generative AI"',
  ],
  ['Cloudflare Gateway', '{"QueryName":"new.example","QueryCategoryNames":["Technology","Artificial Intelligence"]}'],
  ['Sophos Firewall', 'log_component="HTTP" category="Generative AI" category_type="Acceptable" domain="new.example"'],
  [
    'Juniper SRX',
    'WEBFILTER_URL_PERMITTED source-address="10.0.0.1" category="Enhanced_Generative_AI" url="new.example"',
  ],
]
const NO: readonly (readonly [name: string, message: string])[] = [
  ['another category', 'catdesc="Information Technology" hostname="new.example"'],
  ['a path', 'url="https://news.example/artificial-intelligence" catdesc="News and Media"'],
  ['a path without quotes', 'GET https://news.example/jobs/generative-ai HTTP/1.1'],
  ['a search', 'url="https://search.example/?q=generative+ai" catdesc="Search Engines"'],
  ['the name of a host', 'hostname="artificial-intelligence.example" catdesc="Business"'],
  ['a longer category', 'category="Artificial Intelligence Newspapers" domain="new.example"'],
  ['the text of a user agent', 'agent="Mozilla, genai" catdesc="News and Media" hostname="new.example"'],
  ['the query of a URL', 'url="https://new.example/?category=generative-ai" catdesc="News and Media"'],
  ['the query of a URL, alone', 'url="https://new.example/?category=generative-ai&x=1" hostname="new.example"'],
  ['two categories', 'category="News" url="new.example/ category=genai " hostname="new.example"'],
  ['an application of a site of another category', 'appcat="GenAI" catdesc="News and Media" hostname="new.example"'],
  ['a policy', 'policyname="block generative ai" hostname="new.example"'],
]
/** Messages without fields that name the category are lines of columns. */
const formatOf = (message: string) => (/cat\w*["']?[=:]/i.test(message) ? 'any-kv' : 'any-csv')
for (const [name, message] of YES) t.test(name, async (t) => t.ok(hasAiCategory(message, formatOf(message))))
for (const [name, message] of NO) t.test(`not ${name}`, async (t) => t.notOk(hasAiCategory(message, formatOf(message))))

t.test('columns count only in formats that have them', async (t) => {
  t.notOk(
    hasAiCategory('1700000000.000 5 10.0.0.1 TCP_MISS/200 5 GET http://evil.example/?a=,genai, - -', 'proxy-native'),
  )
})

t.test('a long hostile message takes little time', async (t) => {
  for (const part of ['a,', ',a ', 'category=', 'gen ai - a', '"']) {
    const startMs = performance.now()
    hasAiCategory(part.repeat(4096 / part.length), 'any-csv')
    t.ok(performance.now() - startMs < 1000, part)
  }
})
