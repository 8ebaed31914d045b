import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from './programs.ts'

/**
 * Which tests there are, and which command runs them. The name of a file decides: `npm test` runs every `*.test.ts` but those
 * that are named `*.full.test.ts`, which `npm run test:full` runs in addition.
 */
export interface TestFile {
  /** The path from the root of the repository: `test/engine/lmdb/queue.test.ts`. */
  readonly source: string
  /** The compiled file, absolute. */
  readonly compiled: string
  readonly suite: 'quick' | 'full'
}

/** Sources, not dist/, which may still have the compiled form of a test that was deleted or renamed. */
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
