import { readFileSync, writeFileSync } from 'node:fs'
import { serviceSettings } from '../../api/config.ts'
import { collectorSettings } from '../../collector/config.ts'
import { ACTIONS } from '../../engine/admin/actions.ts'
import { loadTemplates } from '../../engine/assess/templates.ts'
import { COVERAGE_COUNTERS } from '../../engine/event/coverage-report.ts'
import { FAULTS } from '../../engine/process/error-codes.ts'
import { settingRows } from '../../engine/process/settings.ts'
import { FRAMEWORK_IDS, FRAMEWORKS } from '../../engine/store/framework.ts'
import { ROLES } from '../../engine/store/members.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { fieldTables, pathsTable, refusalsTable } from './api.ts'
import { FORWARDER_TABLES } from './forwarders.ts'
import { code, markdownTable } from './markdown.ts'
import { registryPage } from './registry.ts'

/*
 * The tables of the documentation that repeat what the code says are made from the code, and the snippets from the files that tests run:
 * `npm run docs` writes them, a test compares them. A table stands between two markers: <!-- table NAME --> and <!-- end -->.
 */
const DOCS = new URL('../../../docs/', import.meta.url)

export const MADE_TABLES: readonly { readonly file: string; readonly name: string; readonly make: () => string }[] = [
  { file: 'reference/configuration.md', name: 'collector', make: () => settingsTable(collectorSettings) },
  { file: 'reference/configuration.md', name: 'service', make: () => settingsTable(serviceSettings) },
  { file: 'reference/administration.md', name: 'roles', make: rolesTable },
  { file: 'reference/errors.md', name: 'faults', make: faultsTable },
  { file: 'reference/assessments.md', name: 'frameworks', make: frameworksTable },
  { file: 'reference/api.md', name: 'paths', make: pathsTable },
  { file: 'reference/api.md', name: 'refusals', make: refusalsTable },
  { file: 'reference/api.md', name: 'fields', make: fieldTables },
  { file: 'design/visibility.md', name: 'coverage', make: coverageTable },
  ...FORWARDER_TABLES.map((table) => ({ file: 'reference/forwarders.md', ...table })),
]

function settingsTable(schema: Parameters<typeof settingRows>[0]): string {
  const rows = settingRows(schema).map((row) => {
    const byDefault = row.default === undefined ? 'required' : row.default === '' ? '' : code(`${row.default}`)
    return [code(row.env), code(row.flag), row.defaultAbout ?? byDefault, row.about]
  })
  return markdownTable(['Variable', 'Flag', 'Default', 'Meaning'], rows)
}

function faultsTable(): string {
  const rows = Object.entries(FAULTS).map(([name, { exit, about }]) => [code(name), String(exit), about])
  return markdownTable(['Code', 'Exit status', 'Meaning'], rows)
}

function rolesTable(): string {
  const ranks: readonly string[] = [...ROLES, 'operator']
  const rows = Object.entries(ACTIONS).map(([action, needed]) => [
    code(action),
    ...ranks.map((_, rank) => (rank >= ranks.indexOf(needed) ? 'yes' : '')),
  ])
  return markdownTable(['Change', ...ranks], rows)
}

function frameworksTable(): string {
  const templates = loadTemplates()
  const rows = FRAMEWORK_IDS.map((id) => {
    const items = templates[id].reduce((count, category) => count + category.items.length, 0)
    return [code(id), FRAMEWORKS[id], String(templates[id].length), String(items)]
  })
  return markdownTable(['Id', 'Framework', 'Categories', 'Items'], rows)
}

function coverageTable(): string {
  const rows = Object.entries(COVERAGE_COUNTERS).map(([name, about]) => [code(name), about])
  return markdownTable(['Counter', 'What it counts'], rows)
}

/** The text of a page with its tables made anew. Throws where a table's markers are missing. */
export function withMadeTables(file: string, text: string): string {
  let made = text
  for (const table of MADE_TABLES.filter((each) => each.file === file)) {
    const begin = `<!-- table ${table.name} -->\n`
    const from = made.indexOf(begin)
    const to = made.indexOf('\n<!-- end -->', from)
    if (from < 0 || to < 0) throw new Error(`${file}: no markers for the table ${table.name}`)
    made = made.slice(0, from + begin.length) + table.make() + made.slice(to)
  }
  return made
}

export function pageText(file: string): string {
  return readFileSync(new URL(file, DOCS), 'utf8')
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  for (const file of new Set(MADE_TABLES.map((table) => table.file))) {
    writeFileSync(new URL(file, DOCS), withMadeTables(file, pageText(file)))
  }
  writeFileSync(new URL('reference/registry.md', DOCS), registryPage(loadCatalog()))
}
