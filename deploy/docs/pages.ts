import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url))

/** Paths of the documentation pages, from the root of the repository. */
export function pagePaths(): string[] {
  const pages = readdirSync(join(REPOSITORY, 'docs'), { recursive: true, encoding: 'utf8' })
  return [
    'README.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    ...pages
      .filter((page) => page.endsWith('.md'))
      .map((page) => join('docs', page))
      .sort(),
  ]
}
