import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { z } from 'zod'
import { COVERAGE_COUNTER_NAMES, type CoverageCounters } from '../../engine/kernel/event/coverage-report.ts'
import { METHODS } from '../../engine/kernel/event/event.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { jsonOption } from '../../engine/kernel/process/program.ts'
import { printRows } from '../../engine/kernel/process/table.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { coverageOf } from '../coverage.ts'
import { type ObservedName, observe } from '../pipeline/observe.ts'

/**
 * The golden capture and its expected names. Both ship next to the compiled programs. `npm run
 * captures` creates them.
 */
const FOLDER = new URL('../../../collector/selftest/', import.meta.url)

/** Names are inferred only if they match a rule. These match the only one. */
export const INFERRED_NAMES = 'inferred.selftest.example'

const namedCase = z.object({
  case: z.string(),
  name: z.string(),
  method: z.enum(METHODS).exclude(['log']),
  ech: z.literal(true).optional(),
})
/** Traffic that has no name and is counted: once, in one counter of the coverage report. */
const countedCase = z.object({ case: z.string(), counter: z.enum(COVERAGE_COUNTER_NAMES) })
const goldenCases = z.object({ named: z.array(namedCase), counted: z.array(countedCase) })
export type GoldenCases = z.output<typeof goldenCases>
export type NamedCase = z.output<typeof namedCase>

/** The result of a case. `invented` is a name that no case expects. */
export interface CaseResult {
  readonly case: string
  readonly method: string
  readonly name: string
  readonly result: 'seen' | 'missed' | 'twice' | 'invented'
}

/**
 * posture-collector selftest: reads the golden capture and prints for each case whether its name
 * was seen.
 */
export function addSelftestCommand(program: Command): void {
  jsonOption(
    program
      .command('selftest')
      .description('Read a built-in capture with every supported case, and print whether its name was seen'),
  ).action(async (options: { json?: boolean }) => {
    const results = await selftest(FOLDER)
    printRows(
      {
        columns: [
          ['Case', 'case', { wrap: true }],
          ['Method', 'method', { hide: 1 }],
          ['Name', 'name', { wrap: true }],
          ['Result', 'result'],
        ],
        rows: results.map((result) => ({ ...result })),
      },
      options,
    )
    const cases = results.filter(({ result }) => result !== 'invented').length
    const seen = results.filter(({ result }) => result === 'seen').length
    const summary = `${seen} of ${cases} seen`
    if (seen < results.length) throw new Fault('SELFTEST_MISSED', summary)
    process.stderr.write(`${summary}\n`)
  })
}

/**
 * Reads golden.pcap in the folder and compares the names with golden.json. @throws Fault if they
 * are missing.
 */
export async function selftest(folder: URL): Promise<CaseResult[]> {
  const { named, counted } = goldenCasesOf(new URL('golden.json', folder))
  const names: ObservedName[] = []
  const observation = await observe(
    { kind: 'file', path: fileURLToPath(new URL('golden.pcap', folder)) },
    // The names are compared here, so the registry has no effect.
    {
      trie: compileTrie([{ domain: INFERRED_NAMES, match: 'suffix' }]),
      lanes: 1,
      everyName: true,
      onNames: (found) => void names.push(...found),
    },
  )
  await observation.done
  const coverage = coverageOf({ observed: observation.counts, live: undefined, link: undefined })
  return [...compared(named, names), ...counted.map((golden) => countedResult(golden, counted, coverage))]
}

/** Several cases may share a counter, which must then have as many. */
function countedResult(
  { case: sentence, counter }: GoldenCases['counted'][number],
  all: GoldenCases['counted'],
  coverage: CoverageCounters,
): CaseResult {
  const expected = all.filter((other) => other.counter === counter).length
  const found = coverage[counter]
  const result = found === expected ? 'seen' : found > expected ? 'twice' : 'missed'
  return { case: sentence, method: 'counted', name: counter, result }
}

function compared(cases: readonly NamedCase[], names: readonly ObservedName[]): CaseResult[] {
  const results: CaseResult[] = cases.map((golden) => {
    const found = names.filter((name) => name.name === golden.name)
    const right = found.filter((name) => name.method === golden.method && name.ech === golden.ech)
    const result = right.length === 1 && found.length === 1 ? 'seen' : right.length > 1 ? 'twice' : 'missed'
    return { case: golden.case, method: golden.method, name: golden.name, result }
  })
  const known = new Set(cases.map(({ name }) => name))
  for (const { name, method } of names) {
    if (!known.has(name)) results.push({ case: '', method, name, result: 'invented' })
  }
  return results
}

function goldenCasesOf(file: URL): GoldenCases {
  const path = fileURLToPath(file)
  try {
    return goldenCases.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch (error) {
    throw new Fault(
      'CAPTURE_UNREADABLE',
      `${path}: the golden capture's list is not there; install the collector again`,
      {
        cause: error,
      },
    )
  }
}
