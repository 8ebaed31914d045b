import { randomBytes, randomInt } from 'node:crypto'
import t from 'tap'
import { Router } from '../../console/http/router.ts'
import { ROUTES } from '../../console/routes.ts'
import { type Browser, serveConsole, type TestConsole } from '../support/console.ts'
import { type Crawl, crawl, routeOf } from '../support/console-crawl.ts'
import { populate, type Words } from '../support/console-data.ts'
import type { Answer } from '../support/https.ts'
import * as fc from '../support/property.ts'
import { makeOrganization } from '../support/store.ts'

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g

/** An organization with random data, and every text that only its pages may contain. */
interface Tenant {
  readonly owner: Browser
  readonly marks: ReadonlySet<string>
  readonly seen: Crawl
}

/** Texts with characters of every kind, each with a mark of hexadecimal digits. */
function randomWords(texts: readonly string[], marks: Set<string>): Words {
  let at = 0
  const mark = (text: string): string => {
    marks.add(text)
    return text
  }
  const random = (): string => mark(`m${randomBytes(6).toString('hex')}`)
  const octet = (): number => randomInt(100, 256)
  return {
    text: () => `${texts[at++ % texts.length]}${random()}`,
    host: () => `${random()}.example`,
    address: () => mark(`${octet()}.${octet()}.${octet()}.${octet()}`),
  }
}

/** What names and labels can contain, including what HTML and CSV must escape. */
const anyText = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
  .map((text) => text.replace(/[\p{C}\p{Z}]/gu, '_'))
const anyTexts = fc.array(fc.oneof(anyText, fc.constantFrom('<b>', '"\'>', '=1+', '../', '%2e%2e/', '?a=1&', '#')), {
  minLength: 1,
  maxLength: 8,
})

async function makeTenant(site: TestConsole, texts: readonly string[]): Promise<Tenant> {
  const marks = new Set<string>()
  const words = randomWords(texts, marks)
  const organization = makeOrganization(site, `o${randomBytes(6).toString('hex')}`)
  marks.add(organization.name).add(organization.id)
  const owner = populate(site, organization, words)
  const seen = await crawl(owner, ['/', '/nothing'])
  // Ids of its keys, tokens, assessments, recommendations and sessions.
  for (const { text } of seen.answers.values()) for (const [id] of text.matchAll(UUID)) marks.add(id)
  for (const path of seen.forms.keys()) for (const [id] of path.matchAll(UUID)) marks.add(id)
  return { owner, marks, seen }
}

const marksIn = (text: string, marks: ReadonlySet<string>): string[] => [...marks].filter((mark) => text.includes(mark))

/** Everything of an answer that the user sees. */
const allOf = (answer: Answer): string => `${JSON.stringify(answer.headers)}\n${answer.text}`

const ROUTER = new Router(ROUTES)

/** The same path with random values for its parameters, of the same form. */
function unknownPath(method: 'GET' | 'POST', path: string, marks: ReadonlySet<string>): string | undefined {
  const pathname = path.split('?')[0] ?? ''
  const found = ROUTER.find(method, pathname)
  let changed = pathname
  for (const value of Object.values(found?.parameters ?? {})) {
    if (marksIn(value, marks).length === 0) continue
    const other = UUID.test(value) ? crypto.randomUUID() : `n${randomBytes(6).toString('hex')}`
    UUID.lastIndex = 0
    changed = changed.replace(encodeURIComponent(value), other)
  }
  return changed === pathname ? undefined : changed
}

t.test('no page of an organization contains anything of another; ids of others are unknown', async (t) => {
  const site = await serveConsole(t, { hasOrigin: true })
  const tenants: Tenant[] = []
  const runs = fc.asyncProperty(anyTexts, async (texts) => {
    const tenant = await makeTenant(site, texts)
    for (const other of tenants) {
      for (const [a, b] of [
        [tenant, other],
        [other, tenant],
      ] as const) {
        assertNothingOf(a.seen, b.marks)
        await assertUnknown(site, a, b)
      }
    }
    tenants.push(tenant)
  })
  await fc.assert(runs, { numRuns: 5 })
  t.ok(tenants.length >= 2)
  for (const { marks, seen } of tenants) t.ok(marksIn([...seen.answers.values()].map(allOf).join(), marks).length > 60)
})

function assertNothingOf(seen: Crawl, marks: ReadonlySet<string>): void {
  for (const [path, answer] of seen.answers) {
    const found = marksIn(allOf(answer), marks)
    if (found.length > 0) throw new Error(`${path} contains ${found.join(', ')} of another organization`)
  }
}

/** An id or name of the other organization gets the same answers as an unknown one. */
async function assertUnknown({ store }: TestConsole, { owner }: Tenant, other: Tenant): Promise<void> {
  const before = changesIn(store).length
  const sessions = store.sessions.all().length
  const paths = [
    ...[...other.seen.answers.keys()].map((path) => ['GET', path] as const),
    ...[...other.seen.forms.keys()].map((path) => ['POST', path] as const),
  ]
  for (const [method, path] of paths) {
    const unknown = unknownPath(method, path, other.marks)
    if (unknown === undefined) continue
    const ask = (each: string): Promise<Answer> =>
      method === 'GET' ? owner.get(each) : owner.post(each, other.seen.forms.get(path))
    const known = path.split('?')[0] ?? ''
    const [foreign, missing] = [await ask(known), await ask(unknown)]
    if (comparable(foreign, known) !== comparable(missing, unknown)) {
      throw new Error(`${method} ${path} of another organization: ${foreign.status} ${foreign.text}`)
    }
    const isEnded = routeOf(method, path) === 'POST /account/sessions/:id/end'
    // 400: the values of the form are refused before anything is looked up.
    const statuses = isEnded ? [303] : method === 'POST' ? [404, 400] : [404]
    if (!statuses.includes(foreign.status)) throw new Error(`${method} ${path}: ${foreign.status}`)
  }
  if (changesIn(store).length !== before) throw new Error('a change was made')
  if (store.sessions.all().length !== sessions) throw new Error('a session was ended')
}

/** A search for a client is a reading, which the audit log has too. */
const changesIn = ({ auditLog }: TestConsole['store']) =>
  auditLog.all().filter(({ action }) => action !== 'client.read')

/** Status and text, without the values of the path itself. */
function comparable({ status, text }: Answer, path: string): string {
  const values = path.split('/').filter((part) => part.length > 8)
  let shown = text
  for (const value of values) {
    const decoded = decodeURIComponent(value)
    for (const each of [value, JSON.stringify(decoded).slice(1, -1), decoded]) {
      shown = shown.replaceAll(escaped(each), '').replaceAll(each, '')
    }
  }
  return `${status} ${shown}`
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
