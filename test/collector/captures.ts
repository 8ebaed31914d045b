import t from 'tap'
import { type ObservedName, type ObserveOptions, observe } from '../../collector/pipeline/observe.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { captureCases, storedVerdict, verdictLine } from '../captures/verdicts.ts'

const trie = compileTrie(loadCatalog().rules)

/** Compares the collector's names in each capture with the builder's list and with tshark's. */
export function testCaptures(options: Pick<ObserveOptions, 'lanes' | 'pool'>): void {
  for (const capture of captureCases()) {
    const { name, file, expected } = capture
    t.test(`${name} with ${options.lanes} lanes: the names in both directions, and the packet classes`, async (t) => {
      const names: ObservedName[] = []
      let framesDone = 0
      const observation = await observe(
        { kind: 'file', path: file },
        {
          ...options,
          trie,
          everyName: true,
          onNames: (found, position) => {
            names.push(...found)
            framesDone = position.framesDone
          },
        },
      )
      const { damage } = await observation.done
      const { counts } = observation
      t.same(
        names.map(({ timeMs: _time, rule: _rule, ...name }) => name),
        expected.names.map(({ frame: _frame, timeMs: _time, ...name }) => name),
        'names, in the order of the frames',
      )
      for (const [index, { timeMs }] of expected.names.entries()) {
        if (timeMs !== undefined) t.equal(names[index]?.timeMs, timeMs, `time of name ${index}`)
      }
      if (expected.tshark !== false) {
        t.same(
          names.map((row) => verdictLine(capture, row)).sort(),
          storedVerdict(capture).names,
          'tshark shows the same',
        )
      }
      if (expected.classes !== undefined) t.same(notEmpty(counts.classes), expected.classes, 'classes')
      t.equal(damage?.message, expected.damage && `${file}: ${expected.damage}`)
      t.equal(sum(Object.values(counts.classes)), counts.frames, 'every frame is in one class')
      t.equal(framesDone, counts.frames)
      t.equal(counts.names, names.length)
      const hellos = names.filter(({ method, via }) => method !== 'dns' && via === undefined).length
      const { helloName, helloEch, connectTargets, socksTargets, proxyHeaderNames } = counts.counters
      const proxied = names.filter(({ via }) => via !== undefined).length
      t.equal(connectTargets + socksTargets + proxyHeaderNames, proxied, "every name of a proxy's handshake is counted")
      // A hello whose name the proxy's handshake had is counted but not reported again.
      if (proxied === 0) t.equal(helloName + helloEch, hellos, 'every name of a ClientHello is counted')
      else t.ok(helloName + helloEch >= hellos, 'every name of a ClientHello is counted')
      t.equal(counts.matched + counts.unmatched, counts.names)
    })
  }
}

function notEmpty(classes: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(classes).filter(([, count]) => count > 0))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
