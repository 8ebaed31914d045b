import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { CaptureFile } from '../../collector/capture/capture-file.ts'
import { DNS_PORTS, PROXY_PORTS, TLS_PORTS } from '../../collector/decode/ports.ts'
import { type ObservedName, observe, type PacketClassName } from '../../collector/pipeline/observe.ts'
import { InlineObserver } from '../../collector/pipeline/observe-inline.ts'
import { RESOLVERS } from '../../collector/visibility.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { generatedCaptures } from '../captures/cases.ts'
import { uncompressed } from '../captures/compressed.ts'
import { captureBytes, captureFile, expectationOf } from '../captures/generated-capture.ts'
import { captureCases } from '../captures/verdicts.ts'
import { testCaptures } from './captures.ts'

const FOLDER = new URL('../../../test/captures/', import.meta.url)
const { rules } = loadCatalog()
const trie = compileTrie(rules)

// The capture thread decodes, with a small pool. Starting a thread per capture is the main cost of
// this test.
testCaptures({ lanes: 0, pool: { batches: 2, frameBytes: 1_000_000, rowBytes: 1_000_000 } })

t.test('one observer reads all captures in the same memory', async (t) => {
  const observer = new InlineObserver({
    ...{ trie, resolvers: compileTrie(RESOLVERS), everyName: true },
    ...{ dnsPorts: DNS_PORTS, tlsPorts: TLS_PORTS, proxyPorts: PROXY_PORTS, loadBalancers: [] },
  })
  for (const { name, file, expected } of captureCases()) {
    const found: ObservedName[] = []
    const { counts } = await observer.observe(await CaptureFile.open(file), {
      onNames: (names) => found.push(...names),
    })
    t.same(
      found.map(({ timeMs: _time, rule: _rule, ...name }) => name),
      expected.names.map(({ frame: _frame, timeMs: _time, ...name }) => name),
      name,
    )
    for (const [packetClass, count] of Object.entries(expected.classes ?? {}))
      t.equal(counts.classes[packetClass as PacketClassName], count, `${name}: ${packetClass}`)
  }
})

t.test('the stored captures equal the output of build.ts', async (t) => {
  for (const [name, capture] of Object.entries(generatedCaptures())) {
    const file = `${name}/${captureFile(capture)}`
    t.ok(captureBytes(capture).equals(uncompressed(fileURLToPath(new URL(file, FOLDER)))), file)
    t.same(
      JSON.parse(readFileSync(new URL(`${name}/expect.json`, FOLDER), 'utf8')),
      expectationOf(capture),
      `${name}/expect.json`,
    )
  }
})

t.test('the demo capture has AI platforms among other names', async (t) => {
  const matched: ObservedName[] = []
  const path = fileURLToPath(new URL('demo/input.pcap', FOLDER))
  const observation = await observe(
    { kind: 'file', path },
    { trie, lanes: 1, onNames: (names) => void matched.push(...names) },
  )
  await observation.done
  const platforms = new Set(matched.map(({ rule }) => rules[rule]?.platform.name))
  t.ok(platforms.size >= 9, `found ${[...platforms].join(', ')}`)
  t.ok(observation.counts.unmatched > 20, `${observation.counts.unmatched} names are of no platform`)
  t.ok(new Set(matched.map(({ client }) => client)).size >= 8, 'several clients')
  t.ok(
    matched.every(({ name }) => !name.includes('example')),
    'names that only resemble a platform do not match',
  )
})
