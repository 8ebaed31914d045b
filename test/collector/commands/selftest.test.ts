import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { selftest } from '../../../collector/commands/selftest.ts'
import { golden } from '../../captures/golden.ts'
import { REPOSITORY } from '../../support/programs.ts'

const FOLDER = pathToFileURL(`${REPOSITORY}/collector/selftest/`)

t.test("the golden capture equals its builder's output, and every case is found", async (t) => {
  const { cases, capture } = golden()
  t.ok(capture.equals(readFileSync(new URL('golden.pcap', FOLDER))), 'run npm run captures')
  t.same(JSON.parse(readFileSync(new URL('golden.json', FOLDER), 'utf8')), cases)
  t.equal(new Set(cases.named.map(({ name }) => name)).size, cases.named.length)
  for (const result of await selftest(FOLDER)) t.equal(result.result, 'seen', result.case)
})

t.test('a missing, a duplicate and an unexpected name are each reported', async (t) => {
  const { cases, capture } = golden()
  const folder = t.testdir()
  const url = pathToFileURL(`${folder}/`)
  const write = (list: unknown, bytes: Buffer) => {
    writeFileSync(`${folder}/golden.json`, JSON.stringify(list))
    writeFileSync(`${folder}/golden.pcap`, bytes)
  }
  const resultsOf = async () => (await selftest(url)).map(({ result }) => result)

  write(cases, capture.subarray(0, 24))
  t.same(new Set(await resultsOf()), new Set(['missed']))

  // The first record is a complete DNS query. Duplicating the record duplicates the first name.
  const second = 24 + 16 + capture.readUInt32LE(24 + 8)
  write(cases, Buffer.concat([capture.subarray(0, second), capture.subarray(24)]))
  t.equal((await resultsOf())[0], 'twice')

  write({ named: cases.named.slice(1), counted: [] }, capture)
  const last = (await selftest(url)).at(-1)
  t.match(last, { result: 'invented', name: cases.named[0]?.name })

  const wrongKind = cases.named.map((golden) => ({ ...golden, method: golden.method === 'dns' ? 'tls' : 'dns' }))
  write({ named: wrongKind, counted: [] }, capture)
  t.same(new Set(await resultsOf()), new Set(['missed']))

  write({}, capture)
  await t.rejects(selftest(url), { code: 'CAPTURE_UNREADABLE', message: /golden\.json: .*install the collector again/ })
})
