import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { EXAMPLES as ANSWER_EXAMPLES } from '../../api/openapi-examples.ts'
import { refusals } from '../../api/openapi-responses.ts'
import { serviceProgram } from '../../api/program.ts'
import { ROUTES } from '../../api/routes.ts'
import { collectorProgram } from '../../collector/program.ts'
import { adminProgram } from '../../engine/cli/program.ts'
import type { Catalog } from '../../registry/catalog.ts'
import { catalogStats } from '../../registry/lookup.ts'
import { PLATFORM_TYPES, type PlatformType } from '../../registry/platform-type.ts'
import { CONTROL, DATA, LAW } from '../../registry/risk-class.ts'
import { ratedRisk, UNKNOWN_POINTS } from '../../registry/risk-sum.ts'
import { code, codeBlock, markdownTable } from './markdown.ts'

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

/** The three programs. Each call builds them again, since parsing changes a command. */
export async function programs(): Promise<Command[]> {
  return [collectorProgram(), serviceProgram(), await adminProgram()]
}

/** docs/reference/cli.md: a line for each command. `man` and `--help` have the rest. */
export async function cliPage(): Promise<string> {
  return [INTRODUCTION, ...(await programs()).map(section)].join('\n')
}

const INTRODUCTION = `# Command line

Every command accepts \`--help\`, which shows its options. The packages have the same as manual pages: \`man posture-admin\`, and
completion for bash, zsh and fish.

[configuration.md](configuration.md) lists the settings of posture-collector and posture-service with their environment
variables. [errors.md](errors.md) lists exit statuses and error codes. \`npm run docs\` generates this page.
`

/** A command and all its subcommands, in the order of the help. */
export function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(commandsOf)]
}

/** \`posture-admin token bind\` */
export function commandName(command: Command): string {
  return command.parent === null ? command.name() : `${commandName(command.parent)} ${command.name()}`
}

function section(program: Command): string {
  const rows = commandsOf(program)
    .filter((command) => command.commands.length === 0)
    .map((command) => [code(commandName(command)), command.summary() || command.description()])
  return `## ${program.name()}\n\n${program.description()}.\n\n${markdownTable(['Command', 'Does'], rows)}\n`
}

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

/** The tables of docs/reference/api.md: routes, error responses, and a sample of each path. */
export function pathsTable(): string {
  const rows = Object.entries(ROUTES).map(([path, { scope, paged }]) => [code(path), code(scope), paged ? 'yes' : 'no'])
  return markdownTable(['Path', 'Scope', 'Paged'], rows)
}

export function refusalsTable(): string {
  const rows = refusals('...').map(({ status, when, message }) => [String(status), when, message])
  return markdownTable(['Status', 'When', 'Message'], rows)
}

/**
 * A request and response for each path, from the examples of the OpenAPI document. Tests validate
 * them against the schemas.
 */
export function answerSamples(): Record<string, () => string> {
  return Object.fromEntries(
    Object.entries(ANSWER_EXAMPLES).map(([path, examples]) => [
      `sample ${path}`,
      () => sampleOf(path, Object.values(examples)[0]?.value),
    ]),
  )
}

function sampleOf(path: string, answer: unknown): string {
  const command = `curl --cacert data/service/tls/certificate.pem -H "X-API-Key: $SVC_API_KEY" https://localhost:8443${path}`
  return `${codeBlock('sh', command)}\n\n${codeBlock('json', JSON.stringify(answer, undefined, 2))}`
}
