import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { candidateOf } from '../registry/candidate-names.ts'
import { loadCatalog, type Rule } from '../registry/catalog.ts'
import { NameMatcher } from '../registry/match.ts'
import { USE_SPECIFICITY_MIN } from '../registry/platform-type.ts'
import type { Figure } from './harness.ts'

/**
 * How well names show AI services: of the hosts of half of the platforms, and of a list of popular
 * names (POPULAR_NAMES: a file with one name a line), which is not part of the repository.
 */
export async function run(): Promise<Figure[]> {
  const catalog = loadCatalog()
  const hosts = [...new Set(catalog.rules.filter(isHeldBack).map(({ domain }) => domain))]
  const figures = [figureOf('hosts of half of the platforms that are candidates', hosts)]
  const file = process.env['POPULAR_NAMES']
  if (file === undefined) return figures
  const matcher = new NameMatcher(catalog)
  const names = readFileSync(file, 'utf8').split('\n')
  const unknown = names.filter((name) => name.includes('.') && matcher.match(name) === undefined)
  return [...figures, figureOf('popular names of no platform that are candidates', unknown)]
}

/** Of half of the platforms, by the hash of their ids: a host whose request is use of AI. */
function isHeldBack({ platform, match, purpose, specificity }: Rule): boolean {
  const isHeld = (createHash('sha256').update(platform.id).digest()[0] ?? 0) % 2 === 0
  return isHeld && match !== 'pattern' && purpose === 'use' && specificity >= USE_SPECIFICITY_MIN
}

function figureOf(what: string, names: readonly string[]): Figure {
  const ours = names.filter((name) => candidateOf(name) !== undefined).length
  return { what, unit: `of ${names.length}`, ours }
}
