import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import { admin, jsonLines, run } from '../../support/programs.ts'
import { squid } from '../../support/syslog-service.ts'

t.test('ingest file reports lines outside the window, what it would store, and logs that cannot match', async (t) => {
  const directory = t.testdir()
  const data = ['--data-dir', join(directory, 'service')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const [token] = await admin('token', 'generate', 'proxy', '--org', 'Acme', ...data)
  const write = (name: string, lines: readonly string[]): string => {
    const path = join(directory, name)
    writeFileSync(path, lines.map((line) => `${line}\n`).join(''))
    return path
  }
  const nowMs = Math.floor(Date.now() / 1000) * 1000
  const oldMs = nowMs - 60 * DAY_MS
  const old = write('old.log', [
    squid('claude.ai', '10.0.0.1', oldMs),
    squid('chatgpt.com', '10.0.0.2', oldMs - DAY_MS),
    squid('claude.ai', '10.0.0.2', oldMs - DAY_MS),
  ])
  const fresh = write('new.log', [squid('claude.ai', '10.0.0.1', nowMs)])
  const addresses = write('addresses.log', [squid('203.0.113.9', '10.0.0.1', nowMs)])
  const ingest = async (...words: string[]) => {
    const ended = await run('admin', ['ingest', 'file', ...words, ...data], { SVC_TOKEN: String(token?.['token']) })
    t.equal(ended.status, 0, ended.stderr)
    return { ...ended, rows: jsonLines(ended.stdout) }
  }
  const iso = (timeMs: number): string => `${new Date(timeMs).toISOString().slice(0, 19)}Z`

  const dry = await ingest('--dry-run', old, fresh, addresses)
  t.match(dry.rows, [
    {
      matched: 3,
      outside_window: 3,
      newest_match: iso(oldMs),
      platforms: [
        {
          platform_id: 'claude',
          matches: 2,
          clients: 2,
          clients_incomplete: false,
          first_seen: iso(oldMs - DAY_MS),
          last_seen: iso(oldMs),
        },
        { platform_id: 'chatgpt', matches: 1, clients: 1 },
      ],
    },
    { matched: 1, outside_window: 0, newest_match: iso(nowMs), platforms: [{ platform_id: 'claude', matches: 1 }] },
    { matched: 0, no_domain: 1, newest_match: null, platforms: [] },
  ])
  const lines = dry.stderr.trim().split('\n')
  t.match(lines, [
    `${old}: all 3 matches are older than the evidence window of 30 days, so scans do not show them; the newest match is of ${iso(oldMs)}; to include it: posture-admin organization set "Acme" --window 61`,
    `${addresses}: read as proxy-native, but no line names a host, so nothing can match; for connections that Squid intercepts, let ssl_bump peek at step 1`,
  ])
  t.equal(lines.length, 2)

  const stored = await ingest(old, fresh)
  t.match(stored.rows, [
    { matched: 3, outside_window: 3 },
    { matched: 1, outside_window: 0 },
  ])
  t.equal(stored.rows[0]?.['platforms'], undefined)
  t.match(stored.stderr, /^\S+old\.log: all 3 matches are older than the evidence window/)

  // The advice holds.
  await admin('organization', 'set', 'Acme', '--window', '61', ...data)
  const mixed = write('mixed.log', [
    squid('claude.ai', '10.0.0.7', oldMs),
    squid('claude.ai', '10.0.0.7', oldMs - 9 * DAY_MS),
  ])
  const { stderr } = await ingest('--dry-run', mixed)
  t.match(stderr, `${mixed}: 1 of 2 matches are older than the evidence window of 61 days`)
  t.notMatch(stderr, /--window/)
})

t.test('ingest file --names prints what was understood of each line', async (t) => {
  const directory = t.testdir()
  const data = ['--data-dir', join(directory, 'service')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const [token] = await admin('token', 'generate', 'proxy', '--org', 'Acme', ...data)
  const path = join(directory, 'mixed.log')
  const nowMs = Date.parse('2026-11-20T09:15:02Z')
  const lines = [
    squid('claude.ai', '10.0.0.1', nowMs),
    '',
    squid('WWW.Example.com', '10.0.0.2', nowMs),
    squid('203.0.113.9', '10.0.0.3', nowMs),
    'nothing that is known',
    '<30>Nov 20 09:15:03 ns1 dnsmasq[811]: query[A] claude.ai from 10.0.0.4',
    '<30>Nov 20 09:15:04 ns1 dnsmasq[811]: reply claude.ai is 203.0.113.9',
    JSON.stringify({ log: 'dnsmasq[811]: query[A] claude.ai from 2001:DB8::7' }),
    '{"timestamp":"2026-11-20T09:15:02Z","src_ip":',
  ]
  writeFileSync(path, lines.map((line) => `${line}\n`).join(''))
  const ingest = (...words: string[]) =>
    run('admin', ['ingest', 'file', ...words, path, ...data], { SVC_TOKEN: String(token?.['token']) })

  const { status, stdout, stderr } = await ingest('--dry-run', '--names')
  t.equal(status, 0, stderr)
  t.equal(stderr, '')
  const none = { file: path, time: null, client: null, host: null, platform: null, format: null, reason: null }
  const time = '2026-11-20T09:15:02.000Z'
  const dns = { ...none, verdict: 'event', host: 'claude.ai', platform: 'claude', format: 'dnsmasq' }
  t.same(jsonLines(stdout), [
    {
      ...none,
      line: 1,
      verdict: 'event',
      time,
      client: '10.0.0.1',
      host: 'claude.ai',
      platform: 'claude',
      format: 'proxy-native',
    },
    { ...none, line: 3, verdict: 'event', time, client: '10.0.0.2', host: 'www.example.com', format: 'proxy-native' },
    { ...none, line: 4, verdict: 'no_domain', time, client: '10.0.0.3', format: 'proxy-native' },
    { ...none, line: 5, verdict: 'unknown' },
    { ...dns, line: 6, time: '2026-11-20T09:15:03.000Z', client: '10.0.0.4' },
    { ...none, line: 7, verdict: 'skipped', time: '2026-11-20T09:15:04.000Z', format: 'dnsmasq' },
    { ...dns, line: 8, client: '2001:db8::7' },
    { ...none, line: 9, verdict: 'rejected', format: 'json-logs', reason: 'JSON: expected one complete object' },
  ])

  const alone = await ingest('--names')
  t.equal(alone.status, 2)
  t.match(alone.stderr, /--names: expected --dry-run/)
})

t.test('a custom format reads the messages of its token, and can be tried with a file', async (t) => {
  const directory = t.testdir({
    'own.yaml': "name: guest-proxy\ndelimiter: '##'\nfields: { time: 1, client: 2, host: 3 }\n",
    'wrong.yaml': "name: guest-proxy\ndelimiter: '|'\nfields: { time: 1, host: 3 }\n",
    'guest.log': '2026-11-20T09:15:02Z##10.0.0.1##claude.ai\n',
  })
  const at = (name: string): string => join(directory, name)
  const data = ['--data-dir', at('service')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const [token] = await admin('token', 'generate', 'guests', '--org', 'Acme', ...data)
  const [id, raw] = [String(token?.['id']), String(token?.['token'])]
  const dry = (...words: string[]) =>
    run('admin', ['ingest', 'file', '--dry-run', ...words, at('guest.log'), ...data], { SVC_TOKEN: raw })
  const set = (file: string) => run('admin', ['token', 'set', id, '--format-rule', file, '--org', 'Acme', ...data])

  t.match(JSON.parse((await dry()).stdout), { matched: 0, unknown: 1 })
  t.match(JSON.parse((await dry('--rule', at('own.yaml'))).stdout), { matched: 1, formats: { 'own-format': 1 } })

  for (const ended of [await set(at('wrong.yaml')), await dry('--rule', at('wrong.yaml'))])
    t.match(ended, { status: 2, stderr: /wrong\.yaml: line 3, fields\.client: expected the number of a column/ })
  t.match(await set(at('missing.yaml')), { status: 2, stderr: /--format-rule \S+missing\.yaml: no such file/ })

  t.match(JSON.parse((await set(at('own.yaml'))).stdout), { custom_format: 'guest-proxy' })
  t.match(JSON.parse((await dry()).stdout), { matched: 1, formats: { 'own-format': 1 } })
  await admin('token', 'set', id, '--label', 'visitors', '--org', 'Acme', ...data)
  const [listed] = await admin('token', 'list', '--org', 'Acme', ...data)
  t.match(listed, { label: 'visitors', custom_format: 'guest-proxy' })
  t.match(JSON.parse((await set('none')).stdout), { custom_format: null })
  t.match(JSON.parse((await dry()).stdout), { matched: 0, unknown: 1 })
})

t.test('the original client is read if the token says so', async (t) => {
  const directory = t.testdir({
    'proxy.log': '10.0.0.7, 10.0.99.2 - - [20/Nov/2026:09:15:02 +0100] "CONNECT claude.ai:443 HTTP/1.1" 200 39\n',
  })
  const data = ['--data-dir', join(directory, 'service')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const [token] = await admin('token', 'generate', 'proxy', '--org', 'Acme', ...data)
  const file = ['ingest', 'file', '--dry-run', '--names', join(directory, 'proxy.log')]
  const read = async () => {
    const { stdout } = await run('admin', [...file, ...data], { SVC_TOKEN: String(token?.['token']) })
    return JSON.parse(stdout.split('\n')[0] ?? '') as unknown
  }
  const set = (to: string) =>
    admin('token', 'set', String(token?.['id']), '--forwarded-clients', to, '--org', 'Acme', ...data)
  t.match(await read(), { client: '10.0.99.2' })
  t.match(await set('on'), [{ forwarded_clients: true }])
  t.match(await read(), { client: '10.0.0.7' })
  t.match(await set('off'), [{ forwarded_clients: false }])
  t.match(await read(), { client: '10.0.99.2' })
})

t.test('a file of which nothing is understood ends with LOG_FORMAT, which names the next step', async (t) => {
  const directory = t.testdir({
    'words.log': 'the weather is fine\n',
    'report.bz2': 'BZh91AY&SY...',
    'mixed.log': `${squid('claude.ai', '10.0.0.1', Date.now())}\nthe weather is fine\n`,
  })
  const data = ['--data-dir', join(directory, 'service')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const [token] = await admin('token', 'generate', 'proxy', '--org', 'Acme', ...data)
  const ingest = (name: string) =>
    run('admin', ['ingest', 'file', join(directory, name), '--dry-run', ...data], {
      SVC_TOKEN: String(token?.['token']),
    })
  for (const [name, why] of [
    ['words.log', /LOG_FORMAT \S+words\.log: no message is in a known format; to read a custom format, write a rule/],
    ['report.bz2', /LOG_FORMAT \S+report\.bz2: looks like bzip2: unpack it first/],
  ] as const) {
    t.match(await ingest(name), { status: 4, stderr: why }, name)
  }
  t.match(await ingest('mixed.log'), { status: 0 })
})
