import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { FormatDetector } from '../engine/formats/formats.ts'
import { LogLine, SCRATCH_BYTES, Verdict } from '../engine/formats/log-line.ts'
import { CandidateTable } from '../engine/ingest/candidate-table.ts'
import { WallClock } from '../engine/ingest/zone.ts'
import { candidateOf } from '../registry/candidate-names.ts'
import { loadCatalog, type Rule } from '../registry/catalog.ts'
import { NameMatcher } from '../registry/match.ts'
import { USE_SPECIFICITY_MIN } from '../registry/platform-type.ts'
import { median, print } from './compare.ts'

/**
 * How well names show AI services: of the hosts of half of the platforms, and of a list of popular
 * names (POPULAR_NAMES: a file with one name a line), which is not part of the repository. And what
 * the search for candidates adds to reading a message.
 */
export async function run({ toy }: { toy: boolean }): Promise<void> {
  const { rules } = loadCatalog()
  const hosts = [...new Set(rules.filter(isHeldBack).map(({ domain }) => domain))]
  const found = hosts.filter((host) => candidateOf(host) !== undefined)
  print(`hosts of half of the platforms: ${found.length} of ${hosts.length} are candidates (${percent(found, hosts)})`)
  const file = process.env['POPULAR_NAMES'] ?? ''
  if (file === '') print('popular names: not measured; set POPULAR_NAMES to a file with one name a line')
  else
    measurePopular(
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((name) => name.includes('.')),
      found.length,
    )
  measureSpeed(toy ? 200 : 20_000, toy ? 2 : 60)
}

/** Of half of the platforms, by the hash of their ids: a host whose request is use of AI. */
function isHeldBack({ platform, match, purpose, specificity }: Rule): boolean {
  const isHeld = (createHash('sha256').update(platform.id).digest()[0] ?? 0) % 2 === 0
  return isHeld && match !== 'pattern' && purpose === 'use' && specificity >= USE_SPECIFICITY_MIN
}

function measurePopular(names: readonly string[], hosts: number): void {
  const matcher = new NameMatcher(loadCatalog())
  const unknown = names.filter((name) => matcher.match(name) === undefined)
  const found = unknown.filter((name) => candidateOf(name) !== undefined)
  print(`popular names of no platform: ${found.length} of ${unknown.length} are candidates`)
  const precision = (100 * hosts) / (hosts + found.length)
  print(`precision if none of these were AI: ${precision.toFixed(0)}%`)
  // In an order that has nothing to do with the names, to be labeled by hand.
  const sample = found.map((name) => [createHash('sha256').update(name).digest('hex'), name] as const).sort()
  print(
    `sample: ${sample
      .slice(0, 20)
      .map(([, name]) => name)
      .join(' ')}`,
  )
}

/** Messages whose names no platform has, some requested far more often than others. */
function measureSpeed(count: number, rounds: number): void {
  const lines = Array.from({ length: count }, (_, at) => {
    const host = Math.floor(count * ((at * 0.618034) % 1) ** 3)
    return Buffer.from(
      `1795162502.119 318 192.0.2.${at % 250} TCP_TUNNEL/200 1 CONNECT www.h${host}.example:443 - DIRECT/- -`,
    )
  })
  const line = new LogLine(Buffer.concat([...lines, Buffer.alloc(SCRATCH_BYTES)]))
  const detector = new FormatDetector()
  const table = new CandidateTable()
  const token = { organizationId: 'one', wallClock: new WallClock('UTC') }
  const read = (isSearched: boolean): number => {
    const start = process.hrtime.bigint()
    let at = 0
    for (const { length } of lines) {
      const verdict = detector.read(line, at, at + length)
      if (verdict === Verdict.event && isSearched) table.note(line, token)
      at += length
    }
    return Number(process.hrtime.bigint() - start) / count
  }
  const times = { without: [] as number[], with: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    times.without.push(read(false))
    times.with.push(read(true))
    if (round % 10 === 9) table.take()
  }
  const added = median(times.with) - median(times.without)
  print(
    `search: ${added.toFixed(0)} ns more than the ${median(times.without).toFixed(0)} ns of finding the host in a message`,
  )
}

function percent(part: readonly unknown[], whole: readonly unknown[]): string {
  return `${((100 * part.length) / whole.length).toFixed(0)}%`
}
