import { coverageFromMessage, coverageFromPacked } from '../../engine/ingest/read-coverage.ts'
import { COVERAGE_COUNT_MAX } from '../../engine/kernel/event/coverage-report.ts'
import { packBatch, unpackBatch } from '../../engine/kernel/event/event.ts'
import { coverageMessage, report } from '../support/coverage.ts'
import { Random } from './random.ts'

/**
 * Parses mutated coverage reports. For any text, nothing throws. The result is a report whose
 * counters can be added, and that stays the same when written and read again; or one line with the
 * error.
 */
const ODD_TEXTS = [
  ...[
    '{',
    '}',
    '[',
    ']',
    '"',
    ',',
    ':',
    '-',
    '-1',
    '0.5',
    '1e999',
    '1e3',
    '18446744073709551616',
    'null',
    'true',
    '{}',
  ],
  ...[
    '[[[[',
    '"packets":',
    '"__proto__":',
    '"ended":false,',
    '2026-02-30T00:00:00Z',
    '\u0000',
    '\ufeff',
    '\\ud800',
    'é',
  ],
] as const

export function fuzzCoverage(seed: number, mutations: number): void {
  const random = new Random(seed)
  for (let done = 0; done < mutations; done++) {
    const text = mutated(random, madeOf(random))
    try {
      check(text)
    } catch (error) {
      throw new Error(`seed ${seed}, report ${done}: ${(error as Error).stack}\n${JSON.stringify(text)}`)
    }
  }
}

function madeOf(random: Random): string {
  const { counters, ...rest } = report({ ended: random.below(2) === 0 })
  const sinceMs = random.below(0x7fff_ffff) * 1000
  const counts = Object.fromEntries(Object.keys(counters).map((name) => [name, random.below(1_000_000)]))
  return coverageMessage(report({ ...rest, sinceMs, madeMs: sinceMs + random.below(1_000_000), counters: counts }))
}

function mutated(random: Random, original: string): string {
  let text = original
  for (let changes = random.below(4); changes > 0; changes--) {
    const at = random.below(text.length + 1)
    switch (random.below(4)) {
      case 0:
        text = text.slice(0, at) + random.of(ODD_TEXTS) + text.slice(at)
        break
      case 1:
        text = text.slice(0, at) + text.slice(at + random.below(12))
        break
      case 2:
        text = text.slice(0, at) + random.of(ODD_TEXTS) + text.slice(at + random.below(12))
        break
      default:
        // Duplicates a part of the text.
        text = text.slice(0, at) + text.slice(random.below(at + 1))
    }
  }
  return text
}

function check(text: string): void {
  const found = coverageFromMessage(text)
  if (typeof found === 'string') {
    if (found === '' || found.length > 10_000) throw new Error(`said ${found.length} characters`)
    return
  }
  for (const [name, count] of Object.entries(found.counters)) {
    if (!Number.isSafeInteger(count) || count < 0 || count > COVERAGE_COUNT_MAX) throw new Error(`${name}: ${count}`)
  }
  if (found.madeMs < found.sinceMs) throw new Error('made before it began')
  const batch = unpackBatch(packBatch([], found), 0)
  if (typeof batch === 'string' || batch.coverage === undefined) throw new Error('its batch cannot be unpacked')
  for (const again of [coverageFromMessage(coverageMessage(found)), coverageFromPacked(batch.coverage)]) {
    if (JSON.stringify(again) !== JSON.stringify(found)) throw new Error(`read again: ${JSON.stringify(again)}`)
  }
}
