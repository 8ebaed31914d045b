import type { Catalog } from '../../registry/catalog.ts'
import { catalogStats } from '../../registry/lookup.ts'
import { PLATFORM_TYPES, type PlatformType } from '../../registry/platform-type.ts'
import { CONTROL, DATA, LAW } from '../../registry/risk-class.ts'
import { ratedRisk, UNKNOWN_POINTS } from '../../registry/risk-sum.ts'
import { code, markdownTable } from './markdown.ts'

/** The types of platforms, with the number of platforms and domains of each. */
export function platformTypes(catalog: Catalog): string {
  const { platforms, domains, byType } = catalogStats(catalog)
  const rows = (Object.keys(PLATFORM_TYPES) as PlatformType[]).map((type) => {
    const { category, about } = PLATFORM_TYPES[type]
    return [code(type), category, byType[type].platforms, byType[type].domains, about]
  })
  const table = markdownTable(['Type', 'Category', 'Platforms', 'Domains', 'Description'], rows)
  return `${platforms} platforms with ${domains} domains:\n\n${table}`
}

/** The three tables of the class. */
export function riskClasses(): string {
  const tables = { data: DATA, control: CONTROL, law: LAW }
  const rows = Object.entries(tables).flatMap(([table, rows]) =>
    Object.entries(rows).map(([row, { text, points }]) => [code(`${table}: ${row}`), text, signed(points)]),
  )
  return markdownTable(['Class', 'The platform', 'Points'], rows)
}

function signed(points: number): string {
  return points > 0 ? `+${points}` : String(points)
}

/** The points of facts that are not known. */
export function unknownFacts(): string {
  const rows = UNKNOWN_POINTS.map(({ text, points }) => [text, `+${points}`])
  return markdownTable(['Unknown', 'Points'], rows)
}

const EXAMPLES =
  'chatgpt claude gemini microsoft-365-copilot github-copilot cursor grammarly deepseek packycode ollama'.split(' ')

/** The risk of well-known platforms as a sum. */
export function riskExamples({ platforms }: Catalog): string {
  const rows = EXAMPLES.flatMap((id) => platforms.filter((platform) => platform.id === id)).map((platform) => {
    const { score, terms = [] } = ratedRisk(platform)
    const sum = terms.map(({ input, points }) => `${points < 0 ? '-' : '+'} ${Math.abs(points)} ${input}`)
    return [platform.name, sum.join(' ').replace(/^\+ /, ''), String(score)]
  })
  return markdownTable(['Platform', 'Terms', 'Risk'], rows)
}
