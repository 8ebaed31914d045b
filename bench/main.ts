import { Fault } from '../engine/process/error-codes.ts'
import { createProgram, runProgram } from '../engine/process/program.ts'
import { print } from './compare.ts'
import { machineLine } from './machine.ts'

/** The benchmarks by name, each in its own file, in the order of the data flow. */
const BENCHMARKS: Readonly<Record<string, () => Promise<{ run(options: { toy: boolean }): Promise<void> }>>> = {
  registry: () => import('./registry.ts'),
  decode: () => import('./decode.ts'),
  outbox: () => import('./outbox.ts'),
  live: () => import('./live.ts'),
  ingest: () => import('./ingest.ts'),
  scan: () => import('./scan.ts'),
  api: () => import('./api.ts'),
  console: () => import('./console.ts'),
  candidates: () => import('./candidates.ts'),
  cluster: () => import('./cluster.ts'),
  'cluster-api': () => import('./cluster-api.ts'),
  'ingest-memory': () => import('./ingest-memory.ts'),
}

const program = createProgram('npm run bench --', 'Measures each stage and a peer in the same run.')
  .argument('[name...]', `which ones: ${Object.keys(BENCHMARKS).join(', ')}; all where none is named`)
  .option('--toy', 'sizes so small that the figures mean nothing: shows that the benchmarks work')
program.action(async (names: string[], options: { toy?: boolean }) => {
  for (const name of names) {
    if (!Object.hasOwn(BENCHMARKS, name)) {
      throw new Fault('USAGE', `no benchmark ${JSON.stringify(name)}, expected ${Object.keys(BENCHMARKS).join(' or ')}`)
    }
  }
  print(machineLine())
  for (const [name, load] of Object.entries(BENCHMARKS)) {
    if (names.length > 0 && !names.includes(name)) continue
    print(`\n${name}`)
    await (await load()).run({ toy: options.toy === true })
  }
})
await runProgram(program)
