import { Fault } from '../engine/kernel/process/error-codes.ts'
import { createProgram, runProgram } from '../engine/kernel/process/program.ts'
import { type Benchmark, figureLines, machineLine, print, type Size } from './harness.ts'

/** The benchmarks by name, each in its own file, in the order of the data flow. */
const BENCHMARKS: Readonly<Record<string, () => Promise<Benchmark>>> = {
  registry: () => import('./registry.ts'),
  decode: () => import('./decode.ts'),
  outbox: () => import('./outbox.ts'),
  live: () => import('./live.ts'),
  https: () => import('./ingest-https.ts'),
  syslog: () => import('./ingest-syslog.ts'),
  formats: () => import('./formats.ts'),
  scan: () => import('./scan.ts'),
  api: () => import('./api.ts'),
  console: () => import('./console.ts'),
  candidates: () => import('./candidates.ts'),
  cluster: () => import('./cluster.ts'),
  'cluster-api': () => import('./cluster-api.ts'),
  memory: async () => ({ run: (await import('./ingest-syslog.ts')).memoryFigures }),
}
const SUMMARY = 'summary'
/** Together at most two minutes, with memory of the collector in `live` and of the service in `api`. */
const IN_SUMMARY: readonly string[] = ['decode', 'live', 'https', 'syslog', 'scan', 'api']

const program = createProgram('npm run bench --', 'Measure each stage and a peer in the same run')
  .argument('[name...]', `Which ones: ${Object.keys(BENCHMARKS).join(', ')}; ${SUMMARY}: some of them, in two minutes`)
  .option('--toy', 'Use sizes so small that the figures mean nothing, to show that the benchmarks work')
program.action(async (names: string[], options: { toy?: boolean }) => {
  const isSummary = names.includes(SUMMARY)
  for (const name of names) {
    if (name === SUMMARY || Object.hasOwn(BENCHMARKS, name)) continue
    throw new Fault(
      'USAGE',
      `no benchmark ${JSON.stringify(name)}, expected ${[SUMMARY, ...Object.keys(BENCHMARKS)].join(' or ')}`,
    )
  }
  const size: Size = options.toy === true ? 'toy' : isSummary ? 'short' : 'full'
  const chosen = isSummary ? IN_SUMMARY : names
  print(machineLine())
  for (const [name, load] of Object.entries(BENCHMARKS)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue
    print(`\n${name}`)
    for (const figure of await (await load()).run(size)) print(`  ${figureLines(figure)}`)
  }
})
await runProgram(program)
