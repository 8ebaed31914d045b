import t from 'tap'
import { ConsoleCounters, consoleRows, makeConsoleCounters } from '../../console/metrics.ts'
import { NETWORK_FAILURES_MAX, WINDOW_MS } from '../../console/sign-in/attempts.ts'
import { Administration } from '../../engine/admin/administration.ts'
import { BLOCK_LIST_FORMATS } from '../../engine/export/block-list-text.ts'
import { serveConsole } from '../support/console.ts'
import { IMPLEMENTATIONS } from '../support/https.ts'
import { makeOrganization } from '../support/store.ts'

function basic(secret: string, user = 'firewall'): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${user}:${secret}`).toString('base64')}` }
}

async function site(t: Parameters<typeof serveConsole>[0], implementation: (typeof IMPLEMENTATIONS)[number] = 'node') {
  const memory = makeConsoleCounters()
  const console = await serveConsole(t, { implementation, counters: new ConsoleCounters(memory) })
  const { store, clock, organization, registry, server } = console
  const administration = new Administration(store, clock)
  const selection = { blocks: 'not-approved', riskMin: 0 } as const
  const { record, raw } = administration.blockListLinks.create(organization, 'firewall', selection)
  const get = (to: string, headers: Record<string, string> = {}) => server.ask(to, { headers })
  const metric = (wanted: string) => consoleRows(memory, [], 0).find(([name]) => name === wanted)?.[3]
  const counts = () => metric('posture_console_block_lists_total')
  return {
    ...console,
    administration,
    record,
    raw,
    counts,
    metric,
    registry,
    server,
    get,
    path: `/blocklist/${record.id}.edl`,
  }
}

for (const implementation of IMPLEMENTATIONS) {
  t.test(`a device downloads a list from ${implementation}, and again only if it changed`, async (t) => {
    const made = await site(t, implementation)
    const { server, get, administration, organization, registry, record, raw, counts, clock, path } = made
    const first = await get(path, basic(raw))
    t.equal(first.status, 200)
    t.equal(first.headers['content-type'], 'text/plain; charset=utf-8')
    t.equal(first.headers['cache-control'], 'private, no-cache')
    t.notOk(first.headers['set-cookie'])
    t.match(first.text, /\nchatgpt\.com\n\*\.chatgpt\.com\n/)
    const etag = String(first.headers['etag'])
    clock.add(60_000)
    const again = await get(path, { ...basic(raw, ''), 'if-none-match': `"other", ${etag}` })
    t.equal(again.status, 304)
    t.equal(again.text, '')
    const head = await server.ask(path, { method: 'HEAD', headers: basic(raw) })
    t.equal(head.status, 200)
    t.equal(Number(head.headers['content-length']), Buffer.byteLength(first.text))

    administration.approvals.add(organization, registry.catalogOf(organization.id), ['ChatGPT'], {
      expiresAtMs: clock.nowMs() + 86_400_000,
    })
    const approved = await get(path, { ...basic(raw), 'if-none-match': etag })
    t.equal(approved.status, 200)
    t.notMatch(approved.text, /\n\*\.chatgpt\.com\n/)
    clock.add(86_400_000)
    const expired = await get(path, { ...basic(raw), 'if-none-match': etag })
    t.equal(expired.status, 304, 'the approval expired, so the list is the first one again')

    const rpz = await get(`/blocklist/${record.id}.rpz`, basic(raw))
    t.match(rpz.text, '\nchatgpt.com CNAME .\n')
    const unknown = await get(`/blocklist/${record.id}.bind`, basic(raw))
    t.equal(unknown.status, 404)
    t.match(unknown.text, 'Formats: rpz, hosts')
    const posted = await server.ask(path, { method: 'POST', headers: basic(raw) })
    t.equal(posted.status, 405)
    t.same(counts(), { sent: 4, not_modified: 2, unauthorized: 0, not_found: 1, rate_limited: 0 })
  })
}

t.test('only the secret of the link opens it, and only until it is revoked', async (t) => {
  const console = await site(t)
  const { get, administration, organization, raw, path } = console
  const other = makeOrganization(console, 'Other')
  const { raw: otherRaw } = administration.blockListLinks.create(other, 'x', { blocks: 'rejected', riskMin: 0 })
  const { raw: key } = administration.apiKeys.create(organization, 'key', ['discovery:read'])
  const wrong: readonly Record<string, string>[] = [
    {},
    { authorization: 'Basic' },
    { authorization: 'Basic !' },
    { authorization: `Bearer ${raw}` },
    { authorization: `Basic ${raw}` },
    { cookie: `__Host-session=${raw}` },
    basic(otherRaw),
    basic(key),
    basic(`${raw}0`),
    basic(raw.toUpperCase()),
    basic(raw, 'a'.repeat(2000)),
  ]
  for (const headers of wrong) {
    const { status, headers: fields, text } = await get(path, headers)
    t.equal(status, 401, JSON.stringify(headers))
    t.equal(fields['www-authenticate'], 'Basic realm="block list"')
    t.equal(text, 'The link or its secret is not valid\n')
  }
  t.equal((await get('/blocklist/x.edl', basic(raw))).status, 401, 'no such link')
  t.equal((await get(path, basic(raw))).status, 200)
  administration.blockListLinks.revoke(organization, raw)
  t.equal((await get(path, basic(raw))).status, 401)
  t.notMatch(JSON.stringify(console.store.auditLog.all()), raw, 'no secret in the audit log')
  administration.organizations.remove(other, () => {})
  t.equal((await get(path, basic(otherRaw))).status, 401, 'the organization was removed')
})

t.test('wrong secrets are limited, and do not stop the right one', async (t) => {
  const { get, clock, raw, path, counts } = await site(t)
  for (let at = 0; at < NETWORK_FAILURES_MAX; at++) t.equal((await get(path)).status, 401)
  const limited = await get(path)
  t.equal(limited.status, 429)
  t.equal(limited.headers['retry-after'], String(WINDOW_MS / 1000))
  t.equal((await get(path, basic(raw))).status, 200)
  clock.add(WINDOW_MS)
  t.equal((await get(path)).status, 401)
  t.match(counts(), { unauthorized: NETWORK_FAILURES_MAX + 1, rate_limited: 1, sent: 1 })
})

t.test('all lists of many links stay in memory, and links with the same selection share theirs', async (t) => {
  const { administration, organization, record, get, metric } = await site(t)
  administration.blockListLinks.revoke(organization, record.id)
  const risks = Array.from({ length: 12 }, (_, index) => 50 + index)
  const links = [...risks, ...risks].map((riskMin, index) =>
    administration.blockListLinks.create(organization, `firewall ${index}`, { blocks: 'not-approved', riskMin }),
  )
  for (const ifNoneMatch of ['"other"', '*', '"other"']) {
    for (const { record, raw } of links) {
      for (const format of BLOCK_LIST_FORMATS) {
        const headers = { ...basic(raw), 'if-none-match': ifNoneMatch }
        const { status } = await get(`/blocklist/${record.id}.${format}`, headers)
        if (status !== (ifNoneMatch === '*' ? 304 : 200)) t.fail(`${record.label} ${format}: ${status}`)
      }
    }
  }
  t.equal(metric('posture_console_block_lists_made_total'), risks.length * BLOCK_LIST_FORMATS.length)
  t.equal(metric('posture_console_block_lists_dropped_total'), 0)
})
