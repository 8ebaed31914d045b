import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { z } from 'zod'
import { Fault } from '../../engine/process/error-codes.ts'
import { jsonOption } from '../../engine/process/program.ts'
import { printRows } from '../../engine/process/table.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { type ObservedName, observe } from '../pipeline/observe.ts'

/**
 * The golden capture and its expected names. Both ship next to the compiled programs. `npm run
 * captures` creates them.
 */
const FOLDER = new URL('../../../collector/selftest/', import.meta.url)

const goldenCases = z.array(
  z.object({
    case: z.string(),
    name: z.string(),
    method: z.enum(['dns', 'tls', 'quic']),
    ech: z.literal(true).optional(),
  }),
)
export type GoldenCase = z.output<typeof goldenCases>[number]

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
  const cases = goldenCasesOf(new URL('golden.json', folder))
  const names: ObservedName[] = []
  const observation = await observe(
    { kind: 'file', path: fileURLToPath(new URL('golden.pcap', folder)) },
    // The names are compared here, so no registry is needed, and the operator's own has no effect.
    { trie: compileTrie([]), lanes: 1, everyName: true, onNames: (found) => void names.push(...found) },
  )
  await observation.done
  return compared(cases, names)
}

function compared(cases: readonly GoldenCase[], names: readonly ObservedName[]): CaseResult[] {
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

function goldenCasesOf(file: URL): GoldenCase[] {
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
