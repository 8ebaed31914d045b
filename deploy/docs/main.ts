import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { serviceSettings } from '../../api/config.ts'
import { collectorSettings } from '../../collector/config.ts'
import { ACTIONS } from '../../engine/admin/actions.ts'
import { readDocuments } from '../../engine/assess/tables.ts'
import { loadTemplates } from '../../engine/assess/templates.ts'
import { EXPORT_OF, EXPORTS, type ExportKind } from '../../engine/export/rows.ts'
import { COVERAGE_COUNTERS, HIDDEN_COUNTERS } from '../../engine/kernel/event/coverage-report.ts'
import { FAULTS } from '../../engine/kernel/process/error-codes.ts'
import { settingRows } from '../../engine/kernel/process/settings.ts'
import { FRAMEWORK_IDS, FRAMEWORKS, PROFILES } from '../../engine/store/framework.ts'
import { ROLES } from '../../engine/store/members.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { platformListSchema, registryFileSchema } from '../../registry/registry-schema.ts'
import { code, markdownTable } from './markdown.ts'
import { ALERT_TABLES, blockListFormats, FORWARDER_TABLES, leftOutReasons, productTables } from './page-tables.ts'
import {
  answerSamples,
  cliPage,
  pagePaths,
  pathsTable,
  platformTypes,
  refusalsTable,
  riskClasses,
  riskExamples,
  unknownFacts,
} from './references.ts'

/*
 * `npm run docs` writes the generated parts of the documentation, and a test compares them: tables
 * that repeat the code, and snippets that tests run. A part is between `<!-- table NAME -->` and
 * `<!-- end -->`. Sample outputs have other markers: see page-commands.ts.
 */
const END = '<!-- end -->'
const REPOSITORY = new URL('../../../', import.meta.url)

/** The tables by name. Any page may show any of them. */
const TABLES: Readonly<Record<string, () => string | Promise<string>>> = {
  'settings posture-collector': () => settingsTable(collectorSettings),
  'advanced settings posture-collector': () => advancedTable(collectorSettings),
  'settings posture-service': () => settingsTable(serviceSettings),
  'advanced settings posture-service': () => advancedTable(serviceSettings),
  roles: rolesTable,
  'error codes': faultsTable,
  frameworks: frameworksTable,
  documents: documentsTable,
  ...Object.fromEntries(EXPORTS.map((kind) => [`export ${kind}`, () => exportColumns(kind)])),
  'block list formats': blockListFormats,
  'block list reasons': leftOutReasons,
  'platform types': () => platformTypes(loadCatalog()),
  'risk classes': riskClasses,
  'unknown facts': unknownFacts,
  'risk examples': () => riskExamples(loadCatalog()),
  products: productTables,
  paths: pathsTable,
  'API errors': refusalsTable,
  ...answerSamples(),
  'coverage counters': coverageTable,
  ...ALERT_TABLES,
  ...Object.fromEntries(FORWARDER_TABLES.map(({ name, make }) => [name, make])),
}

const CLI_PAGE = await cliPage()

/** Pages and files that are generated as a whole, by their path from the root of the repository. */
const PAGES: Readonly<Record<string, () => string>> = {
  'docs/reference/cli.md': () => CLI_PAGE,
  'registry/schema/registry-file.json': () => jsonText(registryFileSchema()),
  'registry/schema/platforms.json': () => jsonText(platformListSchema()),
}

function jsonText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

/** All generated parts: markers and text. */
export type Generated = ReadonlyMap<string, string>

export async function generatedParts(): Promise<Generated> {
  const parts = new Map<string, string>()
  for (const [name, make] of Object.entries(TABLES)) parts.set(`table ${name}`, await make())
  return parts
}

/** Regenerates the parts of a page. Throws if a marker names no part or lacks its end. */
export function withGenerated(page: string, text: string, parts: Generated): string {
  const whole = PAGES[page]
  if (whole !== undefined) return whole()
  let made = text
  for (const [begin, name = ''] of text.matchAll(/<!-- (table .+?) -->\n/g)) {
    const part = parts.get(name)
    if (part === undefined) throw new Error(`${page}: no generated part is named ${JSON.stringify(name)}`)
    const from = made.indexOf(begin) + begin.length
    const to = made.indexOf('<!-- ', from)
    if (!made.startsWith(END, to)) throw new Error(`${page}: no end of ${JSON.stringify(name)}`)
    made = `${made.slice(0, from)}${part}\n${made.slice(to)}`
  }
  return made
}

type Schema = Parameters<typeof settingRows>[0]

function settingCells(row: ReturnType<typeof settingRows>[number]): (string | number)[] {
  const byDefault = row.default === undefined ? 'required' : row.default === '' ? '' : code(`${row.default}`)
  return [code(row.env), code(row.flag), row.defaultAbout ?? byDefault, row.about]
}

function settingsTable(schema: Schema): string {
  const rows = settingRows(schema).filter(({ advanced }) => advanced === undefined)
  return markdownTable(['Variable', 'Flag', 'Default', 'Meaning'], rows.map(settingCells))
}

/** Settings that few need, with the reason to set them. */
function advancedTable(schema: Schema): string {
  const rows = settingRows(schema).flatMap((row) =>
    row.advanced === undefined ? [] : [[...settingCells(row), row.advanced]],
  )
  return markdownTable(['Variable', 'Flag', 'Default', 'Meaning', 'Set it if'], rows)
}

function faultsTable(): string {
  const rows = Object.entries(FAULTS).map(([name, { exit, about }]) => [code(name), String(exit), about])
  return markdownTable(['Code', 'Exit status', 'Meaning'], rows)
}

/** Each role has the changes of the roles before it. */
function rolesTable(): string {
  const rows = [...ROLES, 'operator'].map((role) => [
    role,
    Object.entries(ACTIONS)
      .flatMap(([action, needed]) => (needed === role ? [code(action)] : []))
      .join(', '),
  ])
  return markdownTable(['Role', 'May, in addition to the role above'], rows)
}

function frameworksTable(): string {
  const templates = loadTemplates()
  const rows = FRAMEWORK_IDS.map((id) => {
    const items = templates[id].categories.reduce((count, category) => count + category.items.length, 0)
    return [
      code(id),
      FRAMEWORKS[id],
      String(templates[id].categories.length),
      String(items),
      PROFILES[id].map(code).join(', '),
    ]
  })
  return markdownTable(['Id', 'Framework', 'Categories', 'Items', 'Profiles'], rows)
}

function documentsTable(): string {
  const rows = readDocuments().map(({ prefix, name, address }) => [code(prefix), `[${name}](${address})`])
  return markdownTable(['References', 'Document'], rows)
}

function exportColumns(kind: ExportKind): string {
  const rows = EXPORT_OF[kind].columns.map(({ name, about }) => [code(name), about])
  return markdownTable(['Column', 'Meaning'], rows)
}

function coverageTable(): string {
  const rows = Object.entries({ ...COVERAGE_COUNTERS, ...HIDDEN_COUNTERS }).map(([name, about]) => [code(name), about])
  return markdownTable(['Counter', 'Meaning'], rows)
}

export function pageText(page: string): string {
  const file = new URL(page, REPOSITORY)
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const parts = await generatedParts()
  for (const page of new Set([...pagePaths(), ...Object.keys(PAGES)])) {
    writeFileSync(new URL(page, REPOSITORY), withGenerated(page, pageText(page), parts))
  }
}
