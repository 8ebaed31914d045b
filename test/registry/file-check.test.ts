import t from 'tap'
import { checkChanges, loadCatalog, mergeChanges } from '../../registry/catalog.ts'
import { fileDifferences, fileProblems } from '../../registry/file-check.ts'
import { readRegistryText } from '../../registry/registry-file.ts'

const { platforms } = loadCatalog()
const NEW = `platforms:
  - id: corp-llm
    name: Corp LLM
    vendor: Example Corporation
    platform_type: llm_chat
    url: https://llm.corp.example
    risk: { score: 5, why: Our own data center }
    source: [architecture board]
    domains:
      - { domain: llm.corp.example, match: suffix, role: web, specificity: 1 }
`

const PROBLEMS: readonly {
  readonly name: string
  readonly text: string
  readonly problems: readonly object[]
}[] = [
  { name: 'a good file', text: NEW, problems: [] },
  { name: 'an empty file', text: '{}', problems: [] },
  {
    name: 'two errors in one entry and one in another',
    text: `${NEW.replace('score: 5', 'score: 500').replace('role: web', 'role: admin')}  - { id: claude, nam: C }\n`,
    problems: [
      { severity: 'error', line: 7, entry: 'corp-llm', field: 'risk.score' },
      { severity: 'error', line: 10, entry: 'corp-llm', field: 'domains[0].role' },
      { severity: 'error', line: 11, entry: 'claude', field: 'nam' },
    ],
  },
  {
    name: 'an entry without an id',
    text: `${NEW}  - { name: C }\n`,
    problems: [{ severity: 'error', line: 11, entry: 'platforms[1]', field: 'id' }],
  },
  {
    name: 'no YAML',
    text: 'platforms: [',
    problems: [{ severity: 'error', line: 1, entry: '', field: '' }],
  },
  {
    name: 'an unknown platform under disable',
    text: `${NEW}disable: [nobody]\n`,
    problems: [{ severity: 'error', line: 11, entry: 'nobody', field: 'disable[0]' }],
  },
  {
    name: 'a suffix rule for a shared host',
    text: NEW.replace('domain: llm.corp.example', 'domain: amazonaws.com'),
    problems: [{ severity: 'warning', line: 2, entry: 'corp-llm', field: 'amazonaws.com', problem: /shared host/ }],
  },
  {
    name: 'a widget with the specificity of use',
    text: NEW.replace('specificity: 1', 'specificity: 1, purpose: widget'),
    problems: [{ severity: 'error', line: 10, field: 'domains[0].specificity', problem: /less than 0.6/ }],
  },
]

for (const { name, text, problems } of PROBLEMS) {
  t.test(`problems of ${name}`, async (t) => {
    const found = fileProblems('registry.yaml', text, platforms)
    t.match(found, problems)
    t.equal(found.length, problems.length)
    const isRejected = found.some(({ severity }) => severity === 'error')
    const read = () => checkChanges(platforms, 'registry.yaml', readRegistryText('registry.yaml', text))
    if (isRejected) t.throws(read, { name: 'RegistryFileError' }, 'as reading the file says')
    else t.doesNotThrow(read)
  })
}

t.test('differences are the fields that the file changes', async (t) => {
  const text = `${NEW}  - id: claude
    risk: { score: 20, why: Agreement }
  - id: chatgpt
    vendor: OpenAI
  - id: cohere
    domains:
      - { domain: mistral.ai, match: suffix, role: web, specificity: 0.4, purpose: published }
disable: [zapier]
`
  const changes = readRegistryText('registry.yaml', text)
  const found = fileDifferences(platforms, changes)
  t.match(
    found.map(({ platformId, change, field }) => [platformId, change, field]),
    [
      ['zapier', 'disabled', 'domains'],
      ['corp-llm', 'added', 'domains'],
      ['claude', 'changed', 'risk'],
      ['cohere', 'changed', 'domains'],
      [/^mistral/, 'domain lost', 'domains'],
    ],
  )
  t.match(found[1], { before: '', after: 'llm.corp.example (suffix, web, 1)' })
  t.match(found[2], { before: /^\d+: /, after: '20: Agreement' })
  t.match(found[3], { after: 'mistral.ai (suffix, web, 0.4, published)' })
  t.match(found[4], { before: /^mistral.ai \(suffix, web, /, after: '' })
  t.same(
    fileDifferences(mergeChanges(platforms, changes), { ...changes, disable: [] }),
    [],
    'applied once, it changes no more',
  )
})
