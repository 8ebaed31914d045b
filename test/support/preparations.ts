import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from './programs.ts'
import { runScript } from './run-file.ts'
import type { TestFile } from './test-files.ts'

/**
 * Makes something that takes minutes and that few files of the full suite need. It runs beside the
 * files that do not need it.
 */
export interface Preparation {
  readonly name: string
  /** Arguments of `node`, in the repository. */
  readonly script: readonly string[]
  /** Test files that import one of these modules of test/support wait for it. */
  readonly modules: readonly string[]
}

const PREPARATIONS: readonly Preparation[] = [
  {
    name: 'release',
    script: ['dist/deploy/release/main.js', '--quiet', '--machine', 'x86_64', 'arm64'],
    modules: ['released', 'image'],
  },
  { name: 'debian', script: ['deploy/setup.mjs', '--debian', 'bookworm'], modules: ['debian', 'image'] },
  { name: 'debian-13', script: ['deploy/setup.mjs', '--debian', 'trixie'], modules: ['debian-13'] },
]

/** The preparations of a file, from its imports. */
export function preparationsOf({ source, suite }: TestFile): Preparation[] {
  if (suite !== 'full') return []
  const imported = readFileSync(join(REPOSITORY, source), 'utf8').matchAll(/from '[./]+support\/([^']+)\.ts'/g)
  const modules = new Set(Array.from(imported, ([, module = '']) => module))
  return PREPARATIONS.filter((preparation) => preparation.modules.some((module) => modules.has(module)))
}

/** The preparations of all files. A file is ready when its preparations have ended. */
export class Preparations {
  readonly waiting: Preparation[]
  hasFailed = false
  readonly #needs: ReadonlyMap<TestFile, readonly Preparation[]>
  readonly #ended = new Set<Preparation>()

  constructor(files: readonly TestFile[]) {
    this.#needs = new Map(files.map((file) => [file, preparationsOf(file)]))
    this.waiting = [...new Set([...this.#needs.values()].flat())]
  }

  isReady(file: TestFile): boolean {
    return this.#needs.get(file)?.every((preparation) => this.#ended.has(preparation)) ?? true
  }

  /** Returns the output of a preparation that failed. The files that need it run all the same. */
  async run(preparation: Preparation): Promise<string | undefined> {
    const problem = await runScript(preparation.script)
    if (problem !== undefined) this.hasFailed = true
    this.#ended.add(preparation)
    return problem
  }
}
