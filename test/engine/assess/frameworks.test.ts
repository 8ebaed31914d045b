import { readFileSync } from 'node:fs'
import t from 'tap'
import { FRAMEWORKS_DIR, readTemplate, readTemplates } from '../../../engine/assess/build.ts'
import { loadTemplates } from '../../../engine/assess/templates.ts'
import { FRAMEWORK_IDS, FRAMEWORKS } from '../../../engine/store/framework.ts'

const templates = readTemplates()

t.test('the frameworks are those of the specification, in its order', async (t) => {
  t.same(Object.entries(FRAMEWORKS), [
    ['ai-security', 'AI Security'],
    ['cis-v8', 'CIS Controls v8'],
    ['nist-800-53', 'NIST 800-53'],
    ['nist-csf-2', 'NIST CSF 2.0'],
    ['hipaa', 'HIPAA'],
    ['iso-27001', 'ISO 27001'],
    ['soc-2', 'SOC 2'],
    ['pci-dss', 'PCI DSS'],
  ])
})

t.test('the built frameworks match the files', async (t) => {
  t.same(loadTemplates(), templates)
})

/** The parts of each framework, by the prefixes of item IDs. */
const STRUCTURE: Readonly<Record<string, readonly string[]>> = {
  'ai-security': ['GOV', 'INV', 'DAT', 'ACC', 'MOD', 'MON', 'INC', 'PEO'],
  'cis-v8': Array.from({ length: 18 }, (_, control) => `${control + 1}.`),
  'nist-800-53': 'AC AT AU CA CM CP IA IR MA MP PE PL PM PS PT RA SA SC SI SR'.split(' '),
  'nist-csf-2':
    'GV.OC GV.RM GV.RR GV.PO GV.OV GV.SC ID.AM ID.RA ID.IM PR.AA PR.AT PR.DS PR.PS PR.IR DE.CM DE.AE RS.MA RS.AN RS.CO RS.MI RC.RP RC.CO'.split(
      ' ',
    ),
  hipaa: ['164.308', '164.310', '164.312', '164.314', '164.316', '164.40', '164.41'],
  'iso-27001': ['4.', '5.', '6.', '7.', '8.', '9.', '10.', 'A.5', 'A.6', 'A.7', 'A.8'],
  'soc-2': [...Array.from({ length: 9 }, (_, criterion) => `CC${criterion + 1}.`), 'A1', 'PI1', 'C1', 'P'],
  'pci-dss': Array.from({ length: 12 }, (_, requirement) => `${requirement + 1}.`),
}
for (const id of FRAMEWORK_IDS) {
  t.test(`${id}: every part of the framework has items, and categories have a reasonable size`, async (t) => {
    const ids = templates[id].flatMap(({ items }) => items.map((item) => item.id))
    const parts = STRUCTURE[id] ?? []
    for (const part of parts)
      t.ok(
        ids.some((item) => item.startsWith(part)),
        part,
      )
    t.same(
      ids.filter((item) => !parts.some((part) => item.startsWith(part))),
      [],
      'and nothing else',
    )
    for (const { name, items } of templates[id])
      t.ok(items.length >= 3 && items.length <= 6, `${name}: ${items.length}`)
  })
}

t.test('no text is repeated, and each is a sentence of the right kind', async (t) => {
  const all = FRAMEWORK_IDS.flatMap((id) => templates[id].flatMap(({ items }) => items))
  t.ok(all.length >= 300, `${all.length} items`)
  for (const field of ['title', 'recommendation'] as const) {
    const texts = all.map((item) => item[field])
    t.same(
      texts.filter((text, at) => texts.indexOf(text) !== at),
      [],
      field,
    )
  }
  for (const { id, title, recommendation } of all) {
    t.match(title, /^[A-Z].{14,110}[^.]$/, `${id}: a title is short and has no full stop`)
    t.match(recommendation, /^[A-Z][a-z]+,? .{14,160}\.$/, `${id}: a recommendation is one sentence`)
    t.notMatch(recommendation, /^(The|A|An|You|All|Each|Every) /, `${id}: it begins with what to do`)
  }
})

t.test('items and categories differ in weight and priority', async (t) => {
  for (const id of FRAMEWORK_IDS) {
    const items = templates[id].flatMap((category) => category.items)
    t.ok(new Set(items.map(({ weight }) => weight)).size > 1, `${id}: weights`)
    t.ok(new Set(items.map(({ priority }) => priority)).size > 1, `${id}: priorities`)
    t.ok(new Set(templates[id].map(({ weight }) => weight)).size > 1, `${id}: weights of categories`)
  }
})

const GOOD = readFileSync(new URL('hipaa.yaml', FRAMEWORKS_DIR), 'utf8')
const FAULTY: readonly { name: string; from: string | RegExp; to: string; found: RegExp }[] = [
  {
    name: 'a weight of zero',
    from: 'weight: 4',
    to: 'weight: 0',
    found: /categories\[0\]\.weight: found 0, expected a number above 0/,
  },
  {
    name: 'a priority of six',
    from: 'priority: 1',
    to: 'priority: 6',
    found: /items\[0\]\.priority: found 6, expected/,
  },
  {
    name: 'a duplicate id',
    from: '164.308(a)(2)',
    to: '164.308(A)(1)',
    found: /items\[1\]\.id: found "164.308\(A\)\(1\)", which is already at categories\[0\]\.items\[0\]\.id/,
  },
  {
    name: 'a duplicate category',
    from: 'name: Physical safeguards',
    to: 'name: Administrative safeguards',
    found: /categories\[1\]\.name: found .*, which is already at/,
  },
  {
    name: 'an unknown field',
    from: 'title:',
    to: 'titel:',
    found: /items\[0\]\.title: found nothing, expected one line/,
  },
  { name: 'an item that looks like a formula', from: '164.308(a)(1)', to: '=1', found: /items\[0\]\.id: found "=1"/ },
  {
    name: 'no categories',
    from: /categories:[\s\S]*/,
    to: 'categories: []',
    found: /categories: found a list of 0, expected/,
  },
]
for (const { name, from, to, found } of FAULTY) {
  t.test(`a template with ${name} is rejected`, async (t) => {
    const text = GOOD.replace(from, to)
    t.not(text, GOOD)
    t.throws(() => readTemplate('hipaa.yaml', text), { message: found })
  })
}
