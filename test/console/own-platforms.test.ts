import t from 'tap'
import { RegistryInForce } from '../../engine/store/registry-in-force.ts'
import { lineOfError, RegistryFileError, readRegistryText } from '../../registry/registry-file.ts'
import { serveConsole } from '../support/console.ts'
import { platform } from '../support/own-platforms.ts'
import { makeOrganization } from '../support/store.ts'

const PATH = '/own-platforms'
const CORP = {
  name: 'Corp LLM',
  domains: 'llm.corp.example\r\nchat.corp.example',
  type: 'llm_chat',
  vendor: '',
  risk: '5',
  why: 'Runs in our own data center',
}

t.test('a platform is added by a form, matches from then on, and is removed', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const registry = new RegistryInForce(store)
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get(PATH)).text, /No custom platform/)
  t.equal((await admin.post(PATH, CORP)).status, 303)
  t.match(registry.matcherOf(organization.id).match('x.llm.corp.example')?.platform, {
    id: 'corp-llm',
    vendor: 'Corp LLM',
    risk: { score: 5 },
  })
  t.ok(store.scans.pending(organization.id), 'a scan is requested')
  t.match((await admin.get(PATH)).text, /Corp LLM.*llm\.corp\.example, chat\.corp\.example/s)
  t.match(await admin.rows(`${PATH}.csv`), [
    { Platform: 'Corp LLM', Id: 'corp-llm', Change: 'added', Domains: 'llm.corp.example chat.corp.example' },
  ])
  t.match(await admin.post(PATH, CORP), { status: 409, text: /has Corp LLM already/ })
  const exported = await admin.get(`${PATH}/registry.json`)
  t.match(readRegistryText('registry.json', exported.text), { platforms: [{ id: 'corp-llm' }], disable: [] })
  const other = { ...CORP, name: 'Other' }
  t.match(await admin.post(PATH, other), { status: 409, text: /belongs to corp-llm.*value="Other"/s })
  t.equal((await site.signIn('m', 'member').post(PATH, CORP)).status, 403)
  const foreign = site.signIn('g', 'owner', makeOrganization(site, 'Globex'))
  t.notMatch((await foreign.get(PATH)).text, /corp-llm|Corp LLM/)
  t.equal((await foreign.post(`${PATH}/corp-llm/remove`)).status, 404)
  t.equal((await admin.post(`${PATH}/corp-llm/remove`)).status, 303)
  t.equal(registry.matcherOf(organization.id).match('x.llm.corp.example'), undefined)
})

t.test('a wrong form keeps what was typed and says what is wrong', async (t) => {
  const site = await serveConsole(t)
  const admin = site.signIn('a', 'admin')
  const rows: readonly (readonly [change: Partial<typeof CORP>, text: RegExp])[] = [
    [{ name: 'ChatGPT' }, /has ChatGPT already/],
    [{ domains: 'chatgpt.com' }, /chatgpt\.com belongs to ChatGPT; to take its matches, use a registry file/],
    [{ name: '漢字' }, /Use letters or digits/],
    [{ domains: '' }, /Enter a domain/],
    [{ domains: 'good.example\nbad_/name' }, /Line 2, bad_\/name: /],
    [{ risk: '101' }, /At most 100/],
    [{ risk: 'x' }, /Enter a number/],
    [{ why: ' ' }, /Enter a reason/],
    [{ type: 'none' }, /Choose a category/],
  ]
  for (const [change, expected] of rows) {
    const answer = await admin.post(PATH, { ...CORP, ...change })
    t.ok(answer.status === 400 || answer.status === 409, JSON.stringify(change))
    t.match(answer.text, expected)
    t.match(answer.text, 'chat.corp.example' in change ? '' : /name="name"/)
  }
  t.same(site.store.ownPlatforms.ofOrganization(site.organization.id), [])
})

t.test('a registry file is pasted; its errors name the line', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const admin = site.signIn('a', 'admin')
  const paste = (text: string) => admin.post(`${PATH}/file`, { text })
  const yaml = [
    'platforms:',
    '  - id: corp-llm',
    '    name: Corp LLM',
    '    vendor: Corp',
    '    platform_type: llm_chat',
    '    url: https://llm.corp.example',
    '    risk: { score: 5, why: Own data center }',
    '    source: [board]',
    '    domains:',
    '      - { domain: llm.corp.example, match: suffix, role: web, specificity: 1 }',
    'disable: [claude]',
  ]
  const wrong = (line: number, text: string) =>
    paste(yaml.map((each, at) => (at + 1 === line ? text : each)).join('\n'))
  t.match(await wrong(7, '    risk: { score: 500, why: Own data center }'), {
    status: 400,
    text: /id: corp-llm.*Line 7: corp-llm: risk\.score: /s,
  })
  t.match(await wrong(10, '      - { domain: llm.corp.example, match: near, role: web, specificity: 1 }'), {
    text: /Line 10: corp-llm: domains\[0\]\.match/,
  })
  t.match(await wrong(4, ''), { text: /Line 2: corp-llm: vendor: is missing/ }, 'the entry lacks a field')
  t.match(await wrong(11, 'disable: [nobody]'), { text: /Line 11: nobody: disable\[0\]/ })
  t.match(await wrong(3, '    name: "Corp'), { status: 400, text: /Line \d+: / }, 'not YAML')
  t.match(await paste('{"platforms": [}'), { status: 400, text: /role="alert"/ }, 'not JSON')
  t.match(await paste('platforms: []'), { status: 400, text: /The file has no entry/ })
  t.match(await paste(' '), { status: 400, text: /Choose a file/ })
  t.match(await paste(`# ${'x'.repeat(200_000)}`), { status: 400, text: /At most 128 KiB/ })
  t.equal((await paste('x'.repeat(500_000))).status, 413)
  t.same(store.ownPlatforms.ofOrganization(organization.id), [])
  t.equal((await paste(yaml.join('\n'))).status, 303)
  const { text } = await admin.get(PATH)
  t.match(text, /Claude.*disabled.*Corp LLM.*added/s)
  t.equal((await paste(JSON.stringify({ platforms: [platform('corp-two', 'two.corp.example')] }))).status, 303)
})

t.test('an error of a registry file has its line, also in JSON and for the second of two entries', (t) => {
  const text = JSON.stringify(
    { platforms: [platform('one', 'one.example'), { ...platform('two', 'two.example'), id: 'Two' }] },
    undefined,
    1,
  )
  try {
    readRegistryText('pasted', text)
    t.fail('no error')
  } catch (error) {
    const line = lineOfError(text, error as RegistryFileError)
    t.equal(text.split('\n')[(line ?? 0) - 1]?.trim(), '"id": "Two",')
  }
  const twice = 'platforms:\n  - { id: chatgpt, name: A }\n  - { id: chatgpt, name: B }\n'
  t.equal(lineOfError(twice, new RegistryFileError('pasted', 'chatgpt', 'id', 'is in the file twice')), 3)
  t.equal(lineOfError('[]', new RegistryFileError('pasted', '', '', 'expected an object')), undefined)
  t.end()
})

const lines = (count: number, line: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => line(at)).join('\n')

const HOSTILE: readonly (readonly [name: string, text: string, problem: RegExp])[] = [
  // V8 ended the process: "RegExpCompiler Allocation failed".
  ['deep lists', '['.repeat(120_000), /more than 32 levels of nesting/],
  ['deep block lists', '- '.repeat(60_000), /more than 32 levels of nesting/],
  ['12,000 keys', lines(12_000, (at) => `k${at}: 1`), /Line 101: more than 100 keys in one map/],
  ['12,000 keys in braces', `- {${'k,'.repeat(12_000)}}`, /Line 1: more than 100 keys in one map/],
  ['12,000 keys of broken JSON', `{${'"k":1,'.repeat(12_000)}a`, /is not valid JSON|property name/],
  ['an error for each character', `[]${']'.repeat(120_000)}`, /Line 1: not YAML: Unexpected flow-seq-end/],
  ['an unknown alias', 'platforms: *none', /Unresolved alias/],
  [
    'aliases of aliases',
    `a: &a [${'x,'.repeat(9)}]\nb: &b [${'*a,'.repeat(99)}]\nplatforms: [${'*b,'.repeat(99)}]`,
    /alias/,
  ],
]

for (const [name, text, problem] of HOSTILE) {
  t.test(`a hostile registry file is refused: ${name}`, async (t) => {
    const site = await serveConsole(t)
    const admin = site.signIn('ada@acme.example', 'admin')
    t.match(await admin.post('/own-platforms/file', { text }), { status: 400, text: problem })
    t.equal((await admin.get('/own-platforms')).status, 200)
  })
}
