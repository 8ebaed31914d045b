import { readFileSync } from 'node:fs'
import t from 'tap'
import { buildFrameworks, FRAMEWORKS_DIR, readWritten, sourceOf } from '../../../engine/assess/build.ts'
import { lawFrom, lawText } from '../../../engine/assess/grade.ts'
import { currentItems } from '../../../engine/assess/items.ts'
import { inProfile } from '../../../engine/assess/profiles.ts'
import { byUrgency } from '../../../engine/assess/publish.ts'
import { recommendationsAfter } from '../../../engine/assess/recommendation.ts'
import { readDocuments, readIdentifiers, readLaw, readMappings } from '../../../engine/assess/tables.ts'
import { loadFrameworks } from '../../../engine/assess/templates.ts'
import { FRAMEWORK_IDS, FRAMEWORKS, type FrameworkId, PROFILES } from '../../../engine/store/framework.ts'
import { draft } from '../../support/assessments.ts'

const built = buildFrameworks()
const { templates, mappings } = built
const identifiers = readIdentifiers()
const itemsOf = (id: FrameworkId) => templates[id].categories.flatMap(({ items }) => items)

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
  t.same(loadFrameworks(), built)
})

/** The numbers that the publishers state. */
const IDENTIFIER_COUNTS: Readonly<Record<FrameworkId, number>> = {
  'ai-security': 245,
  'cis-v8': 153,
  'nist-800-53': 370,
  'nist-csf-2': 106,
  hipaa: 79,
  'iso-27001': 123,
  'soc-2': 61,
  'pci-dss': 230,
}

for (const id of FRAMEWORK_IDS) {
  t.test(`${id}: the items are exactly the published identifiers, in their baselines`, async (t) => {
    const published = identifiers.get(id) ?? []
    t.equal(published.length, IDENTIFIER_COUNTS[id])
    const items = itemsOf(id)
    const named = items.flatMap((item) => item.references ?? [item.id])
    t.same([...new Set(named)].sort(), published.map((each) => each.id).sort())
    if (id === 'ai-security') return
    t.equal(named.length, published.length, 'each once')
    const baselines = new Map(published.map((each) => [each.id, each.baselines]))
    for (const item of items) t.same(item.baselines ?? [], baselines.get(item.id), item.id)
  })
}

t.test('AI Security covers the OWASP Top 10 of agents, and each reference has a document', async (t) => {
  const named = new Set(itemsOf('ai-security').flatMap(({ references = [] }) => references))
  for (let risk = 1; risk <= 10; risk++) {
    const id = `OWASP ASI${String(risk).padStart(2, '0')}`
    t.ok(named.has(id), id)
  }
  const documents = readDocuments()
  for (const { prefix, address } of documents) {
    t.ok(URL.canParse(address), address)
    t.ok(
      [...named].some((reference) => reference.startsWith(prefix)),
      `${prefix} is used`,
    )
  }
  t.same(
    [...named].filter((reference) => documents.filter(({ prefix }) => reference.startsWith(prefix)).length !== 1),
    [],
  )
})

t.test('each legal duty has the day from which it applies, and an item is marked until its first day', async (t) => {
  const law = readLaw()
  const named = itemsOf('ai-security').flatMap(({ references = [] }) => references)
  t.same([...new Set(named.filter((reference) => sourceOf(reference) === 'AIACT'))].sort(), [...law.keys()].sort())
  for (const { appliesFrom, source } of law.values()) {
    t.match(appliesFrom, /^20\d\d-\d\d-\d\d$/)
    t.match(source, /^https:\/\/eur-lex\.europa\.eu\/eli\/reg\/20\d\d\/\d+\/oj$/)
  }
  const later = (id: string, day: string) => lawFrom('ai-security', id, Date.parse(day))
  // Digital Omnibus: new prohibitions in December 2026, high-risk systems of Annex III in December 2027.
  t.equal(later('PRO-7', '2026-12-01'), '2026-12-02')
  t.equal(later('PRO-7', '2026-12-02'), undefined)
  t.equal(later('PEO-5', '2026-12-02'), '2027-12-02')
  t.equal(later('PRV-1', '2026-12-02'), undefined)
  t.equal(later('PRO-6', '2026-12-02'), undefined, 'one of its duties applies')
  t.equal(later('AGT-1', '2020-01-01'), undefined, 'no duty')
  t.equal(
    lawText(itemsOf('ai-security').find(({ id }) => id === 'PRO-6')?.law),
    'AIACT Art. 5(1)(h) from 2025-02-02, AIACT Art. 26(10) from 2027-12-02',
  )
})

t.test('every mapping is between published identifiers, and both items have it', async (t) => {
  const known = new Set([...identifiers].flatMap(([framework, all]) => all.map(({ id }) => `${framework} ${id}`)))
  for (const { from, id, to, ids } of readMappings()) {
    t.same(
      [`${from} ${id}`, ...ids.map((each) => `${to} ${each}`)].filter((each) => !known.has(each)),
      [],
    )
  }
  t.notOk(mappings['nist-csf-2']['GV.OC-02']?.['nist-800-53']?.['PM-9'], 'PM-9 is in no baseline')
  t.equal(mappings['cis-v8']['1.1']?.['iso-27001']?.['A.5.9'], 'superset')
  t.equal(mappings['iso-27001']['A.5.9']?.['cis-v8']?.['1.1'], 'subset')
  t.equal(mappings['ai-security']['MOD-1']?.['nist-csf-2']?.['GV.SC-04'], 'intersects')
})

t.test('weights and priorities follow the rule', async (t) => {
  const expected: readonly (readonly [FrameworkId, string, number, number])[] = [
    ['nist-800-53', 'AC-2', 3, 1],
    ['nist-800-53', 'AC-2(1)', 2, 3],
    ['nist-800-53', 'AC-2(11)', 1, 5],
    ['cis-v8', '1.1', 3, 1],
    ['hipaa', '164.308(a)(1)(ii)(A)', 3, 1],
    ['hipaa', '164.308(a)(3)(ii)(A)', 2, 3],
  ]
  for (const [framework, id, weight, priority] of expected) {
    t.match(
      itemsOf(framework).find((item) => item.id === id),
      { weight, priority },
      `${framework} ${id}`,
    )
  }
  for (const id of FRAMEWORK_IDS) {
    for (const { name, weight, items } of templates[id].categories)
      t.equal(
        weight,
        items.reduce((sum, item) => sum + item.weight, 0),
        name,
      )
    t.ok(new Set(itemsOf(id).map(({ weight }) => weight)).size > 1, `${id}: weights differ`)
  }
  for (const { id, references = [], weight, priority } of itemsOf('ai-security')) {
    const isLaw = references.some((name) => sourceOf(name) === 'AIACT')
    t.equal(weight, isLaw || priority <= 2 ? 3 : priority === 3 ? 2 : 1, id)
  }
})

/** All items of a framework, the most urgent first, as recommendations. */
function mostUrgent(frameworkId: FrameworkId): string[] {
  const made = draft({ frameworkId, result: { overallScore: 0, grade: 'F', categories: [] } })
  const categories = currentItems(frameworkId).categories.map(({ items, ...category }) => ({
    ...category,
    items: items.map((item) => ({ ...item, answer: 'no' as const })),
  }))
  return recommendationsAfter(made, categories, new Map(), 1)
    .sort(byUrgency)
    .map(({ itemId }) => itemId)
}

t.test('everybody who uses or builds AI looks for shadow AI', async (t) => {
  for (const id of ['INV-2', 'INV-3']) {
    const item = itemsOf('ai-security').find((each) => each.id === id)
    t.same(item?.baselines, ['user', 'builder', 'high-risk-deployer'])
  }
})

t.test('priorities follow risk', async (t) => {
  const first = (id: FrameworkId) => itemsOf(id).filter(({ priority }) => priority === 1).length
  t.ok(first('ai-security') <= 20, `P1 of AI Security: ${first('ai-security')}`)
  t.ok(first('nist-csf-2') <= 35, `P1 of CSF: ${first('nist-csf-2')}`)
  t.same(
    itemsOf('pci-dss').filter(({ priority }) => priority > 3),
    [],
  )
  const priorityOf = new Map(itemsOf('ai-security').map(({ id, priority }) => [id, priority]))
  for (const id of ['INV-1', 'INV-2', 'INV-3', 'ACC-1', 'ACC-3', 'MON-3', 'INC-1', 'INC-2', 'INC-3']) {
    t.ok((priorityOf.get(id) ?? 5) <= 2, id)
  }
  for (const id of FRAMEWORK_IDS) {
    t.same(
      itemsOf(id).filter(({ mustPass, priority }) => mustPass && priority > 1),
      [],
    )
  }
  const controls = mostUrgent('nist-800-53')
  t.ok(controls.indexOf('IA-2(1)') < controls.indexOf('PE-15'), 'MFA before water damage')
  const iso = mostUrgent('iso-27001')
  t.ok(iso.indexOf('A.8.5') < iso.indexOf('A.7.5'), 'MFA before fire and water')
  t.same(
    mostUrgent('ai-security').slice(0, 10),
    ['ACC-1', 'ACC-3', 'DAT-1', 'DAT-2', 'GOV-1', 'INC-1', 'INV-1', 'INV-2', 'INV-3', 'MON-3'],
    'single sign-on, agents, data, policy, incidents and shadow AI',
  )
})

t.test('a number that the standard does not have is an example', async (t) => {
  const number = /\d%|\d (?:working |business )?(?:second|minute|hour|day|week|month|year)s?\b(?! a day)/
  for (const id of ['ai-security', 'nist-csf-2', 'nist-800-53', 'iso-27001', 'soc-2'] as const) {
    for (const { id: item, question = '', guidance, recommendation } of itemsOf(id)) {
      for (const text of [question, guidance?.yes, guidance?.partial, guidance?.no, recommendation]) {
        if (number.test(text ?? '')) t.match(text, /for example|such as/, `${id} ${item}`)
      }
    }
  }
})

t.test('profiles have as many items as published', async (t) => {
  const counts: readonly (readonly [FrameworkId, string, number])[] = [
    ['nist-800-53', 'low', 149],
    ['nist-800-53', 'moderate', 287],
    ['nist-800-53', 'high', 370],
    ['cis-v8', 'ig1', 56],
    ['cis-v8', 'ig2', 130],
    ['cis-v8', 'ig3', 153],
    ['soc-2', 'security', 33],
    ['soc-2', 'privacy', 18],
    ['hipaa', 'required', 57],
  ]
  for (const [framework, profile, count] of counts) {
    const chosen = inProfile(framework, templates[framework].categories, [profile])
    t.equal(
      chosen.reduce((sum, { items }) => sum + items.length, 0),
      count,
      `${framework} ${profile}`,
    )
  }
  for (const id of FRAMEWORK_IDS) {
    const named = new Set(itemsOf(id).flatMap(({ baselines = [] }) => baselines))
    t.same(
      PROFILES[id].filter((name) => !named.has(name)),
      [],
      `${id}: each profile has items`,
    )
  }
  const inAny = itemsOf('ai-security').map(({ baselines = [] }) => baselines)
  t.notOk(
    inAny.some((each) => each.length === 0),
    'each item of AI Security is in a profile',
  )
  t.notOk(
    inAny.some((each) => each.includes('user') && !each.includes('high-risk-deployer')),
    'a deployer of high-risk systems is a user',
  )
  const soc2 = templates['soc-2'].categories
  t.same(
    inProfile('soc-2', soc2, ['confidentiality', 'cc1.1']).flatMap(({ items }) => items.map(({ id }) => id)),
    ['CC1.1', 'C1.1', 'C1.2'],
  )
  t.throws(() => inProfile('soc-2', soc2, ['low', 'CC1.1']), { code: 'USAGE', message: /--profile low: SOC 2 has/ })
})

/** The longest texts, in characters. */
const LENGTHS = {
  title: 80,
  question: 185,
  yes: 145,
  partial: 145,
  no: 145,
  evidence: 130,
  recommendation: 185,
} as const

t.test('texts are short, and none is repeated within its framework', async (t) => {
  for (const framework of FRAMEWORK_IDS) {
    const items = itemsOf(framework).map(({ guidance, question, ...item }) => {
      if (guidance === undefined || question === undefined) throw new Error(`${framework} ${item.id} lacks its texts`)
      return { ...item, ...guidance, question }
    })
    for (const [field, max] of Object.entries(LENGTHS) as [keyof typeof LENGTHS, number][]) {
      for (const item of items) t.ok(item[field].length <= max, `${framework} ${item.id} ${field}`)
    }
    for (const field of ['question', 'evidence', 'recommendation'] as const) {
      const texts = items.map((item) => item[field].toLowerCase())
      t.same(
        texts.filter((text, at) => texts.indexOf(text) !== at),
        [],
        `${framework} ${field}`,
      )
    }
    for (const { id, question, recommendation } of items) {
      t.match(question, /^[A-Z].*\?$/, `${framework} ${id}: one question`)
      t.match(recommendation, /^[A-Z][a-z]+,? .*\.$/, `${framework} ${id}: one sentence`)
      t.notMatch(recommendation, /^(The|A|An|You|All|Each|Every) /, `${framework} ${id}: begins with what to do`)
    }
  }
})

const GOOD = readFileSync(new URL('cis-v8.yaml', FRAMEWORKS_DIR), 'utf8')
const [FIRST_ID, SECOND_ID] = itemsOf('cis-v8').map(({ id }) => id) as [string, string]
const [FIRST_CATEGORY, SECOND_CATEGORY] = templates['cis-v8'].categories.map(({ name }) => name) as [string, string]
const FAULTY: Readonly<Record<string, readonly [from: string | RegExp, to: string, found: RegExp]>> = {
  'a duplicate id': [
    `"${SECOND_ID}"`,
    `"${FIRST_ID}"`,
    /items\[1\]\.id: found .*, which is already at categories\[0\]\.items\[0\]\.id/,
  ],
  'a duplicate category': [
    `name: ${SECOND_CATEGORY}`,
    `name: ${FIRST_CATEGORY}`,
    /categories\[1\]\.name: found .*, which is already at/,
  ],
  'an unknown field': ['title:', 'titel:', /items\[0\]\.title: found nothing, expected one line/],
  'no question': ['question:', 'weight:', /items\[0\]\.question: found nothing/],
  'an item that looks like a formula': [`"${FIRST_ID}"`, '=1', /items\[0\]\.id: found "=1"/],
  'no categories': [/categories:[\s\S]*/, 'categories: []', /categories: found a list of 0, expected/],
}
for (const [name, [from, to, found]] of Object.entries(FAULTY)) {
  t.test(`a framework with ${name} is rejected`, async (t) => {
    const text = GOOD.replace(from, to)
    t.not(text, GOOD)
    t.throws(() => readWritten('cis-v8.yaml', text), { message: found })
  })
}
