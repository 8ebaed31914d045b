import { randomInt } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { type Preparation, Preparations } from './support/preparations.ts'
import { REPOSITORY } from './support/programs.ts'
import { type FileResult, killRunning, runFiles } from './support/run-file.ts'
import { sharedProcesses, type TestFile, testFiles } from './support/test-files.ts'

/*
 * npm test and npm run test:full: runs test files in parallel, each in its own process, and sums up
 * their reports. The tests use tap as a library. tap's own runner is not used, because it loads a
 * TypeScript compiler, mocks and process hooks into every process, including those that tests start
 * (docs/design/testing.md).
 */
const USAGE = `npm test [-- [OPTION...] [PART...]]
  PART      run the files whose path contains PART, of both suites
  --full    run the full suite
  --rest    of the full suite, run what npm test does not: *.full.test.ts
  --jobs N  run N files at a time (default: two more than there are CPUs, because files often wait;
            with --rest four more)
  --alone   run each file in its own process (default: files of some folders share one)
  --table   write the measured times into test/times.tsv; each file runs alone
  --retry   run a failed file once more, alone; if it passes, list it as unstable
`
/** Only a file that hangs takes this long. */
const TIMEOUT_SECONDS = 900
/** CPU seconds of the files of one process. A long one could run alone at the end. */
const SHARED_CPU_SECONDS_MAX = 30
const PROGRESS_MS = 30_000
/** The share of the examples of a property that `npm test` tries. */
const QUICK_PROPERTY_SHARE = '0.3'
const FAILURE_LINES = 60
/** More failed files are not unstable tests but a defect, and repeating them takes too long. */
const RETRIED_FILES_MAX = 12
const LOGS = join(REPOSITORY, '.tap/logs')
const TABLE = join(REPOSITORY, 'test/times.tsv')

/** Of the files of one process. */
interface Outcome {
  readonly files: readonly TestFile[]
  readonly result: FileResult
}

function chosenFiles(options: { full: boolean; rest: boolean }, parts: readonly string[]): TestFile[] {
  const all = testFiles()
  if (parts.length > 0) return all.filter(({ source }) => parts.some((part) => source.includes(sourceOf(part))))
  if (options.rest) return all.filter(({ suite }) => suite === 'full')
  if (options.full) return all
  return all.filter(({ suite }) => suite === 'quick')
}

/** Accepts the path of the source or of the compiled file. */
function sourceOf(part: string): string {
  return relative(REPOSITORY, join(REPOSITORY, part))
    .replace(/^dist\//, '')
    .replace(/\.js$/, '.ts')
}

const HEADER = 'file\tcpu_seconds\twall_seconds\n'
const ROW = /^(\S+)\t([\d.]+)\t([\d.]+)$/gm

/** CPU and wall seconds of each file on two cores, with the programs that it starts. */
function readTable(): Map<string, readonly [cpu: number, wall: number]> {
  const rows = readFileSync(TABLE, 'utf8').matchAll(ROW)
  return new Map([...rows].map(([, source = '', cpu, wall]) => [source, [Number(cpu), Number(wall)]]))
}

/** Updates the measured times. Rows of files that did not run stay. */
function writeTable(outcomes: readonly Outcome[]): void {
  const sources = new Set(testFiles().map(({ source }) => source))
  const rows = new Map([...readTable()].filter(([source]) => sources.has(source)))
  for (const { files, result } of outcomes) {
    for (const { source } of files) rows.set(source, [result.cpuSeconds, result.wallSeconds])
  }
  const lines = [...rows]
    .sort(([, [one]], [, [other]]) => other - one)
    .map(([source, [cpu, wall]]) => `${source}\t${cpu.toFixed(1)}\t${wall.toFixed(1)}\n`)
  writeFileSync(TABLE, HEADER + lines.join(''))
}

/**
 * The files of each process, slow ones first, so that none runs alone at the end. Files that
 * test/times.tsv does not list yet come before all others.
 */
function processesOf(files: readonly TestFile[], alone: boolean): TestFile[][] {
  const table = readTable()
  const cpuSecondsOf = ({ source }: TestFile): number => table.get(source)?.[0] ?? Number.MAX_VALUE
  const secondsOf = ({ source }: TestFile): number => table.get(source)?.[1] ?? Number.MAX_VALUE
  const processes = alone ? files.map((file) => [file]) : sharedProcesses(files, cpuSecondsOf, SHARED_CPU_SECONDS_MAX)
  const sum = (each: readonly TestFile[]): number => each.reduce((total, file) => total + secondsOf(file), 0)
  return processes.sort((one, other) => sum(other) - sum(one))
}

async function runAll(
  processes: readonly (readonly TestFile[])[],
  preparations: Preparations,
  jobs: number,
  environment: NodeJS.ProcessEnv,
): Promise<Outcome[]> {
  const waiting = [...processes]
  const running = new Set<readonly TestFile[] | Preparation>()
  const outcomes: Outcome[] = []
  const showProgress = (): void => {
    const failed = outcomes.filter(({ result }) => result.failed > 0).length
    const names = [...running].map((each) => ('name' in each ? each.name : nameOf(each))).join(', ')
    const text = `${countOf(outcomes.map(({ files }) => files))} of ${countOf(processes)} files, ${failed} failed; running ${names}`
    if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${text.slice(0, process.stdout.columns - 1)}`)
    else print(text)
  }
  const timer = setInterval(showProgress, PROGRESS_MS)
  const takeReady = (): readonly TestFile[] | undefined => {
    const at = waiting.findIndex((files) => files.every((file) => preparations.isReady(file)))
    return at < 0 ? undefined : waiting.splice(at, 1)[0]
  }
  const prepare = async (): Promise<void> => {
    for (let next = preparations.waiting.shift(); next !== undefined; next = preparations.waiting.shift()) {
      running.add(next)
      const problem = await preparations.run(next)
      running.delete(next)
      if (problem !== undefined) print(`\nFAILED preparation ${next.name}\n${problem}\n`)
    }
  }
  const work = async (): Promise<void> => {
    for (let files = takeReady(); files !== undefined; files = takeReady()) {
      running.add(files)
      if (process.stdout.isTTY) showProgress()
      outcomes.push(...(await runProcess(files, environment)))
      running.delete(files)
    }
  }
  const prepared = prepare()
  /** Files that are not ready when all others have started run after the preparations. */
  const lane = async (): Promise<void> => {
    await work()
    await prepared
    await work()
  }
  await Promise.all([prepared.then(work), ...Array.from({ length: jobs - 1 }, lane)])
  clearInterval(timer)
  if (process.stdout.isTTY) process.stdout.write('\r\x1b[K')
  return outcomes
}

/**
 * Runs files in one process. If one fails, each runs again alone, so that the report names the
 * file. A failure that then does not repeat stays a failure of all.
 */
async function runProcess(
  files: readonly TestFile[],
  environment: NodeJS.ProcessEnv,
  logSuffix = '',
): Promise<Outcome[]> {
  const logFile = join(LOGS, `${nameOf(files).replaceAll(/[/ ]/g, '-')}${logSuffix}.tap`)
  const compiled = files.map((file) => file.compiled)
  const result = await runFiles(compiled, { timeoutSeconds: TIMEOUT_SECONDS, logFile, environment })
  if (result.failed === 0) return [{ files, result }]
  if (files.length === 1) {
    printFailure(files, result, logFile)
    return [{ files, result }]
  }
  const alone: Outcome[] = []
  for (const file of files) alone.push(...(await runProcess([file], environment)))
  if (alone.some((each) => each.result.failed > 0)) return alone
  printFailure(files, result, logFile)
  return [{ files, result }]
}

function printFailure(files: readonly TestFile[], { failures }: FileResult, logFile: string): void {
  if (process.stdout.isTTY) process.stdout.write('\r\x1b[K')
  print(`\nFAILED ${sourcesOf(files)} (${relative(REPOSITORY, logFile)})`)
  if (files.length > 1) print('  only together: each of them passes alone')
  printFailures(failures)
  print('')
}

function printFailures(failures: readonly string[]): void {
  for (const failure of failures) {
    const lines = failure.split('\n')
    for (const line of lines.slice(0, FAILURE_LINES)) print(`  ${line}`)
    if (lines.length > FAILURE_LINES) print(`  and ${lines.length - FAILURE_LINES} more lines in the log`)
  }
}

/**
 * Runs the files of failed processes once more, each alone while nothing else runs. Files that pass
 * are unstable: their outcome becomes the second one, and both outputs are printed.
 */
async function retryFailed(outcomes: readonly Outcome[], environment: NodeJS.ProcessEnv): Promise<Outcome[]> {
  const failed = outcomes.filter(({ result }) => result.failed > 0)
  if (countOf(failed.map(({ files }) => files)) > RETRIED_FILES_MAX) return [...outcomes]
  const final = outcomes.filter(({ result }) => result.failed === 0)
  for (const first of failed) {
    const again: Outcome[] = []
    for (const file of first.files) again.push(...(await runProcess([file], environment, '-again')))
    final.push(...again)
    if (again.some(({ result }) => result.failed > 0)) continue
    print(`\nUNSTABLE ${sourcesOf(first.files)}`)
    printFailures(first.result.failures)
    for (const { files, result } of again)
      print(`  again, alone: ${sourcesOf(files)}: ${result.passed} passed in ${Math.round(result.wallSeconds)} s`)
    print('')
  }
  return final
}

function printSummary(outcomes: readonly Outcome[], seconds: number): void {
  const sum = (of: (result: FileResult) => number): number =>
    outcomes.reduce((total, { result }) => total + of(result), 0)
  const skipped = outcomes.flatMap(({ files, result }) => result.skipped.map((name) => `${nameOf(files)}: ${name}`))
  if (skipped.length > 0) print(`Skipped:\n${skipped.map((name) => `  ${name}`).join('\n')}`)
  const failed = outcomes.filter(({ result }) => result.failed > 0).flatMap(({ files }) => files)
  if (failed.length > 0) {
    print(`Failed:\n${failed.map(({ source }) => `  ${source}`).join('\n')}`)
    print(`Run them again: npm test -- ${sourcesOf(failed)}`)
  }
  const cpu = Math.round(sum(({ cpuSeconds }) => cpuSeconds))
  const files = countOf(outcomes.map((each) => each.files))
  print(`${files} files in ${Math.round(seconds)} s, ${cpu} s of CPU, ${skipped.length} tests skipped`)
  print(`${sum(({ passed }) => passed)} passed, ${sum(({ failed }) => failed)} failed`)
}

const countOf = (processes: readonly (readonly TestFile[])[]): number =>
  processes.reduce((sum, { length }) => sum + length, 0)

const sourcesOf = (files: readonly TestFile[]): string => files.map(({ source }) => source).join(' ')

/** Short: `engine/kernel/lmdb/queue`, or `engine/kernel/lmdb/queue and 3 more`. */
function nameOf([first, ...others]: readonly TestFile[]): string {
  const name = (first?.source ?? '').replace(/^test\//, '').replace(/\.test\.ts$/, '')
  return others.length === 0 ? name : `${name} and ${others.length} more`
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    full: { type: 'boolean', default: false },
    rest: { type: 'boolean', default: false },
    alone: { type: 'boolean', default: false },
    table: { type: 'boolean', default: false },
    retry: { type: 'boolean', default: false },
    jobs: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(USAGE)
  process.exit()
}
const files = chosenFiles(values, positionals)
if (files.length === 0) {
  process.stderr.write(`no test file has a path that contains ${positionals.join(' or ')}\n`)
  process.exit(2)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    killRunning()
    process.kill(process.pid, signal)
  })
}
const environment: NodeJS.ProcessEnv = {}
const isFull = values.full || values.rest
if (isFull && process.env['PROPERTY_SEED'] === undefined) {
  environment['PROPERTY_SEED'] = `${randomInt(2 ** 31)}`
  print(`property tests run with PROPERTY_SEED=${environment['PROPERTY_SEED']}`)
}
// The full suite and a run of single files try all examples of a property.
// Without a chosen seed, so that CI, which sets another each time, does so too.
if (!isFull && positionals.length === 0 && process.env['PROPERTY_SEED'] === undefined)
  environment['PROPERTY_SHARE'] = QUICK_PROPERTY_SHARE
const startMs = performance.now()
const jobs = Number(values.jobs ?? availableParallelism() + (values.rest ? 4 : 2))
// A run of single files uses what an earlier full run has made.
const preparations = new Preparations(isFull ? files : [])
let outcomes = await runAll(
  processesOf(files, values.alone || values.table || positionals.length > 0),
  preparations,
  jobs,
  environment,
)
if (values.retry) outcomes = await retryFailed(outcomes, environment)
if (values.table) writeTable(outcomes)
printSummary(outcomes, (performance.now() - startMs) / 1000)
process.exitCode = preparations.hasFailed || outcomes.some(({ result }) => result.failed > 0) ? 1 : 0
