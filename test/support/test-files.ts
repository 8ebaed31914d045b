import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { REPOSITORY } from './programs.ts'

/**
 * The test files, and the command that runs each. The file name decides: `npm test` runs every
 * `*.test.ts` except `*.full.test.ts`, which `npm run test:full` runs in addition.
 */
export interface TestFile {
  /** Path from the repository's root: `test/engine/kernel/lmdb/queue.test.ts`. */
  readonly source: string
  /** Absolute path of the compiled file. */
  readonly compiled: string
  readonly suite: 'quick' | 'full'
}

/** Lists the sources, because dist/ may still contain tests that were deleted or renamed. */
export function testFiles(): TestFile[] {
  return readdirSync(join(REPOSITORY, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .sort()
    .map((name) => testFile(`test/${name}`))
}

export function testFile(source: string): TestFile {
  const compiled = join(REPOSITORY, 'dist', source.replace(/\.ts$/, '.js'))
  return { source, compiled, suite: source.endsWith('.full.test.ts') ? 'full' : 'quick' }
}

const textOf = ({ source }: TestFile): string => readFileSync(join(REPOSITORY, source), 'utf8')

/**
 * Loading the modules takes longer than most tests, so several files of a folder share a process.
 * A file that starts programs, or changes or measures its process, has one of its own.
 */
const OWN_PROCESS =
  /\bprocess\.|\bperformance\.|\bsetFlags|\bspawn|\bfork\(|cpuMsOf|allocated|startService|PROGRAMS|function-calls/
const FILES_TOGETHER_MAX = 16

function mayShareProcess(file: TestFile): boolean {
  return file.suite === 'quick' && !OWN_PROCESS.test(textOf(file))
}

/**
 * Splits files into those that share a process, in their order.
 *
 * @param cpuSecondsOf CPU seconds of a file
 * @param cpuSecondsMax of the files of one process
 */
export function sharedProcesses(
  files: readonly TestFile[],
  cpuSecondsOf: (file: TestFile) => number,
  cpuSecondsMax: number,
): TestFile[][] {
  const groups: TestFile[][] = []
  const open = new Map<string, { files: TestFile[]; seconds: number }>()
  for (const file of files) {
    const folder = dirname(file.source)
    const seconds = cpuSecondsOf(file)
    const group = open.get(folder)
    const isShared = mayShareProcess(file) && seconds <= cpuSecondsMax
    if (
      isShared &&
      group !== undefined &&
      group.files.length < FILES_TOGETHER_MAX &&
      group.seconds + seconds <= cpuSecondsMax
    ) {
      group.files.push(file)
      group.seconds += seconds
      continue
    }
    const alone = { files: [file], seconds }
    groups.push(alone.files)
    if (isShared) open.set(folder, alone)
  }
  return groups
}
