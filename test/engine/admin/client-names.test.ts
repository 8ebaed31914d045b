import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Packr } from 'msgpackr'
import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { readHostNames } from '../../../engine/admin/host-names-file.ts'
import { sealRecord } from '../../../engine/kernel/lmdb/record.ts'
import { DAY_MS, HOUR_MS } from '../../../engine/kernel/process/clock.ts'
import { addressBytes } from '../../../engine/kernel/process/network.ts'
import { CLIENT_NAMES_MAX } from '../../../engine/limits.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { RECORD_VERSION } from '../../../engine/store/family.ts'
import { uuidBytes } from '../../../engine/store/keys.ts'
import { type NameSpan, spanText } from '../../../engine/store/name-spans.ts'
import { applyRetention } from '../../../engine/store/retention.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { admin } from '../../support/programs.ts'
import { makeOrganization, NOON, openStore, registries, Sender, type TestStore } from '../../support/store.ts'

const ADDRESS = '10.2.0.7'

/** Imports files at NOON of some days of November, and prints the names of ADDRESS. */
function imported(
  t: Parameters<typeof openStore>[0],
  files: readonly (readonly [day: number, text: string])[],
): string[] {
  const { store, clock, organization, administration } = acmeSite(t)
  const { clientNames } = administration
  for (const [day, text] of files) {
    clock.set(NOON + (day - 20) * DAY_MS)
    clientNames.importHosts(organization, readHostNames(text, 'names').names)
  }
  return store.clientNames.spansOf(organization.id, ADDRESS).map(spanText)
}

t.test('an import does not rename history', async (t) => {
  const named = (name: string): string => `${ADDRESS},${name}`
  const dated = (name: string, from: string, to: string): string =>
    `address,name,from,to\n${ADDRESS},${name},${from},${to}`
  const other = '10.2.0.8,printer'
  for (const [about, files, spans] of [
    ['the first import also names the past', [[3, named('laptop')]], ['laptop']],
    [
      'the same name goes on',
      [
        [3, named('laptop')],
        [9, named('laptop')],
      ],
      ['laptop'],
    ],
    [
      'another name begins with its import',
      [
        [3, named('laptop')],
        [9, named('phone')],
      ],
      ['laptop until 2026-11-09T12:00:00Z', 'phone since 2026-11-09T12:00:00Z'],
    ],
    [
      'a new address begins with its import',
      [
        [3, other],
        [9, named('phone')],
      ],
      ['phone since 2026-11-09T12:00:00Z'],
    ],
    [
      'a missing address has no name any more',
      [
        [3, named('laptop')],
        [9, other],
      ],
      ['laptop until 2026-11-09T12:00:00Z'],
    ],
    [
      'a lease that is missing ended',
      [
        [3, dated('laptop', '2026-11-01', '2026-11-20')],
        [9, other],
      ],
      ['laptop from 2026-11-01 to 2026-11-09T12:00:00Z'],
    ],
    [
      'a lease that was renewed between two imports is one span',
      [
        [3, dated('laptop', '2026-11-01', '2026-11-05')],
        [9, dated('laptop', '2026-11-04', '2026-11-15')],
      ],
      ['laptop from 2026-11-01 to 2026-11-15'],
    ],
    [
      'times in a file count before the time of an import',
      [
        [3, named('laptop')],
        [20, dated('phone', '2026-11-08', '2026-11-10')],
      ],
      [
        'laptop until 2026-11-08',
        'phone from 2026-11-08 to 2026-11-10',
        'laptop from 2026-11-10 to 2026-11-20T12:00:00Z',
      ],
    ],
    [
      'a lease in use names the address after an import without times',
      [
        [3, named('laptop')],
        [20, dated('phone', '2026-11-02', '2026-11-21')],
      ],
      ['laptop until 2026-11-02', 'phone from 2026-11-02 to 2026-11-21'],
    ],
    ...[
      ['tablet,,', 'phone,2026-11-04,2026-11-06'],
      ['phone,2026-11-04,2026-11-06', 'tablet,,'],
    ].map(
      (lines) =>
        [
          `lines with and without times: ${lines}`,
          [
            [3, named('laptop')],
            [9, ['address,name,from,to', ...lines.map((line) => `${ADDRESS},${line}`)].join('\n')],
          ],
          [
            'laptop until 2026-11-04',
            'phone from 2026-11-04 to 2026-11-06',
            'laptop from 2026-11-06 to 2026-11-09T12:00:00Z',
            'tablet since 2026-11-09T12:00:00Z',
          ],
        ] as const,
    ),
    [
      'only an end, in the past',
      [
        [3, other],
        [9, dated('laptop', '', '2026-11-05')],
      ],
      ['laptop until 2026-11-05'],
    ],
    [
      'a beginning in the future, then nothing',
      [
        [3, dated('laptop', '2026-11-10', '')],
        [9, other],
      ],
      [],
    ],
  ] as const) {
    t.same(imported(t, files), spans, about)
  }
})

t.test('names of an organization are limited; those that ended first leave', async (t) => {
  const { store, clock, organization, administration } = acmeSite(t)
  const { clientNames } = administration
  const names = (name: string, count: number): Map<string, NameSpan[]> => {
    const span = { name, fromMs: 0, toMs: Number.POSITIVE_INFINITY }
    return new Map(Array.from({ length: count }, (_, at) => [`10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`, [span]]))
  }
  const spansCount = (): number =>
    [...store.clientNames.hosts(organization.id)].reduce((sum, [, spans]) => sum + spans.length, 0)
  clientNames.importHosts(organization, names('first', 10))
  clock.add(DAY_MS)
  clientNames.importHosts(organization, names('second', CLIENT_NAMES_MAX - 10))
  t.equal(spansCount(), CLIENT_NAMES_MAX)
  t.equal(store.clientNames.spansOf(organization.id, '10.0.0.9').length, 2)
  clock.add(DAY_MS)
  clientNames.importHosts(organization, names('second', CLIENT_NAMES_MAX - 5))
  t.equal(spansCount(), CLIENT_NAMES_MAX, 'of names that ended at the same time, only as many as must leave')
  clock.add(DAY_MS)
  clientNames.importHosts(organization, names('second', CLIENT_NAMES_MAX))
  t.equal(spansCount(), CLIENT_NAMES_MAX)
  t.match(store.clientNames.spansOf(organization.id, '10.0.0.9'), [{ name: 'second' }])
})

t.test('names that ended before the clients that are kept leave with them', async (t) => {
  const opened = acmeSite(t)
  const { store, clock, organization, administration } = opened
  const { clientNames } = administration
  const other = makeOrganization(opened, 'Other')
  const text = `address,name,from,to
10.2.0.7,old,2026-10-01,2026-10-22
10.2.0.7,kept,2026-10-22,2026-10-22T00:00:01Z
10.2.0.8,gone,2026-10-01,2026-10-02
10.2.0.9,open,2026-10-01,
`
  for (const each of [organization, other]) clientNames.importHosts(each, readHostNames(text, 'names').names)
  const { id } = organization
  for (const _step of applyRetention(store, id, clock.nowMs()));
  const left = Array.from(store.clientNames.hosts(id), ([address, spans]) => [
    address,
    ...spans.map(({ name }) => name),
  ])
  t.same(left, [
    ['10.2.0.7', 'kept'],
    ['10.2.0.9', 'open'],
  ])
  t.equal(store.clientNames.hostsCount(other.id), 3)
})

t.test('the one name of schema 2 is a name without a beginning or end', async (t) => {
  const { store, clock, organization } = acmeSite(t)
  const key = Buffer.concat([uuidBytes(organization.id), addressBytes(ADDRESS) ?? Buffer.alloc(0)])
  const record = sealRecord(RECORD_VERSION, new Packr({ useRecords: false }).pack({ address: ADDRESS, name: 'laptop' }))
  store.environment.write(() => store.environment.table('client-names').putSync(key, record))
  const spans = (): string[] => store.clientNames.spansOf(organization.id, ADDRESS).map(spanText)
  t.same(spans(), ['laptop'])
  for (const _step of applyRetention(store, organization.id, clock.nowMs()));
  t.same(spans(), ['laptop'])
  new Administration(store, clock).clientNames.importHosts(organization, readHostNames(`${ADDRESS},phone`, 'x').names)
  t.same(spans(), ['laptop until 2026-11-20T12:00:00Z', 'phone since 2026-11-20T12:00:00Z'])
})

/** laptop-7 used Claude at ADDRESS, then phone-9; and a user whose logs name ADDRESS used it with laptop-7. */
function reassigned(opened: TestStore) {
  const { store, clock } = opened
  const organization = makeOrganization(opened, 'Acme')
  const sender = new Sender()
  const event = (ms: number, user = '') =>
    sender.event('claude.ai', ms, { client: ADDRESS, ...(user === '' ? {} : { user }) })
  const nowMs = clock.nowMs()
  const events = [event(nowMs - 9 * DAY_MS), event(nowMs - HOUR_MS), event(nowMs - 9 * DAY_MS, 'ada')]
  store.environment.write(() => store.buffer.append(organization.id, events))
  runScan(store, registries, organization.id, 'schedule', clock)
  const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
  return {
    organization,
    times: { old: day(nowMs - 20 * DAY_MS), changed: day(nowMs - 5 * DAY_MS) },
  }
}

t.test('commands show the names of the time of use, and find an address by an earlier one', async (t) => {
  const opened = openStore(t, { startMs: Math.floor(Date.now() / 1000) * 1000 })
  const { organization, times } = reassigned(opened)
  const data = ['--data-dir', opened.directory]
  const file = join(opened.directory, 'names.csv')
  const { old, changed } = times
  writeFileSync(file, `address,name,from,to\n${ADDRESS},laptop-7,${old},${changed}\n${ADDRESS},phone-9,${changed},\n`)
  t.match(await admin('client', 'names', 'import', file, ...data), [{ file, format: 'csv', names: 1 }])
  const laptop = `laptop-7 from ${old} to ${changed}`
  const now = { name: 'phone-9', name_from: `${changed}T00:00:00Z`, name_to: null, earlier_names: [laptop] }
  const uses = await admin('platform', 'show', 'Claude', '--clients', ...data)
  t.match(
    uses.sort((first, second) => Number(first['user']) - Number(second['user'])),
    [
      { user: null, ...now },
      { user: 'ada', name: 'laptop-7', earlier_names: [] },
    ],
  )
  const list = (...words: string[]) => admin('client', 'list', ...words, ...data)
  t.match(await list(), [
    { client: ADDRESS, ...now, found_name: null },
    { client: 'ada', name: 'laptop-7', name_to: `${changed}T00:00:00Z`, earlier_names: [], found_name: null },
  ])
  t.match(await list('--search', 'phone'), [{ client: ADDRESS, found_name: null }], 'not the user of the time before')
  t.match(await list('--search', 'LAPTOP'), [{ client: ADDRESS, ...now, found_name: laptop }, { client: 'ada' }])
  t.match(await admin('client', 'export', ADDRESS, ...data), [
    { kind: 'name of an address', client: ADDRESS, text: laptop },
    { kind: 'name of an address', client: ADDRESS, text: `phone-9 since ${changed}` },
    { kind: 'use' },
  ])
  await admin('client', 'erase', ADDRESS, ...data)
  t.same(opened.store.clientNames.spansOf(organization.id, ADDRESS), [])
})
