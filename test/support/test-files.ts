import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from './programs.ts'

/**
 * The test files, and the command that runs each. The file name decides: `npm test` runs every
 * `*.test.ts` except `*.full.test.ts`, which `npm run test:full` runs in addition.
 */
export interface TestFile {
  /** Path from the repository's root: `test/engine/lmdb/queue.test.ts`. */
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

/** Whether the file has property tests, whose examples depend on the seed. */
export function hasProperties({ source }: TestFile): boolean {
  return /from '[./]+support\/property\.ts'/.test(readFileSync(join(REPOSITORY, source), 'utf8'))
}
