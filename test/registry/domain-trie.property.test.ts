import t from 'tap'
import { loadCatalog } from '../../registry/catalog.ts'
import { compileTrie, type TrieRule } from '../../registry/compile-trie.ts'
import { DomainTrie } from '../../registry/domain-trie.ts'
import * as fc from '../support/property.ts'
import { PROPERTY_SHARE } from '../support/property.ts'
import { dottedName, makeLabels, makeRules, SeededRandom, wireName } from '../support/random-names.ts'
import { ReferenceMatcher } from '../support/reference-matcher.ts'

/** `npm test` tries its share of 200,000; `npm run fuzz:registry` tries 10,000,000. */
const NAMES = Number(process.env['REGISTRY_FUZZ_NAMES'] ?? 200_000)
const NAMES_A_SEED = 1000

// 10,000,000 names take a minute and a half.
t.setTimeout(30_000 + NAMES / 10)

/** Guard bytes around the name, so that a read outside [offset, end) changes the result. */
const buffer = new Uint8Array(4096)
const view = new DataView(buffer.buffer)

function place(bytes: Uint8Array, random: SeededRandom): { offset: number; end: number } {
  const offset = 1 + random.below(16)
  const guard = random.of([0, 1, 3, 0x2e, 0x61, 0xff])
  buffer.fill(guard, offset - 1, offset + bytes.length + 8)
  buffer.set(bytes, offset)
  return { offset, end: offset + bytes.length }
}

let matched = 0
let checked = 0

/** The first name of the seed on which trie and reference differ, or undefined. */
function difference(seed: number): string | undefined {
  const random = new SeededRandom(seed)
  const rules = makeRules(random, 2 + random.below(40))
  return differenceOn(rules, random, NAMES_A_SEED)
}

function differenceOn(rules: readonly TrieRule[], random: SeededRandom, names: number): string | undefined {
  const trie = new DomainTrie(compileTrie(rules))
  const reference = new ReferenceMatcher(rules)
  for (let made = 0; made < names; made++) {
    const labels = makeLabels(random, rules)
    const wire = wireName(labels)
    if (random.below(8) === 0) wire[random.below(wire.length)] = random.below(256)
    const onWire = place(wire, random)
    const wanted = reference.matchWire(wire)
    const found = trie.matchWire(view, onWire.offset, onWire.end)
    const dotted = dottedName(labels, random.below(4) === 0)
    const inText = place(dotted, random)
    const wantedText = reference.matchDotted(dotted)
    const foundText = trie.matchDotted(view, inText.offset, inText.end)
    if (found !== wanted || foundText !== wantedText) {
      const text = JSON.stringify(labels)
      return `${text}: wire ${found}, not ${wanted}; dotted ${foundText}, not ${wantedText}; ${JSON.stringify(rules.slice(0, 50))}`
    }
    checked++
    if (found !== -1) matched++
  }
  return undefined
}

t.test(`the trie and the reference matcher agree on random names`, async (t) => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const found = difference(seed)
      if (found !== undefined) throw new Error(found)
    }),
    { numRuns: Math.ceil(NAMES / NAMES_A_SEED), endOnFailure: true },
  )
  t.ok(checked >= NAMES * PROPERTY_SHARE, `${checked} names`)
  t.ok(matched > checked / 5 && matched < (checked * 4) / 5, `${matched} of them match a rule: neither side is rare`)
})

t.test(
  'the trie and the reference matcher agree on 10,000 names similar to those of the built-in registry',
  async (t) => {
    t.equal(differenceOn(loadCatalog().rules, new SeededRandom(3), 10_000), undefined)
  },
)

t.test('the comparison detects a rule missing from the reference', async (t) => {
  const rules = makeRules(new SeededRandom(1), 40)
  const trie = new DomainTrie(compileTrie(rules))
  const reference = new ReferenceMatcher(rules.slice(1))
  const random = new SeededRandom(2)
  let differences = 0
  for (let made = 0; made < 2000; made++) {
    const wire = wireName(makeLabels(random, rules))
    const { offset, end } = place(wire, random)
    const found = trie.matchWire(view, offset, end)
    if (found !== -1 && found - 1 !== reference.matchWire(wire)) differences++
  }
  t.ok(differences > 0)
})
