import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { REPOSITORY } from './programs.ts'

export const MONITORING = join(REPOSITORY, 'deploy/monitoring')

export interface AlertRule {
  readonly alert: string
  readonly expr: string
}

interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly AlertRule[] }[]
}

export function alertRules(): readonly AlertRule[] {
  const file = parse(readFileSync(join(MONITORING, 'posture-rules.yml'), 'utf8')) as RuleFile
  return file.groups.flatMap(({ rules }) => rules)
}

export interface Panel {
  readonly id?: number
  readonly type: string
  readonly title?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[]
}

export function dashboardPanels(): readonly Panel[] {
  const text = readFileSync(join(MONITORING, 'grafana-dashboard.json'), 'utf8')
  return (JSON.parse(text) as { readonly panels: readonly Panel[] }).panels
}

/** The queries of the dashboard, with values for Grafana's variables. */
export function dashboardQueries(): readonly string[] {
  return dashboardPanels()
    .flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    .map((expr) => expr.replaceAll('$__rate_interval', '5m').replaceAll('$organization', '.*'))
}

/** Words of PromQL that are no metric. */
const KEYWORDS = new Set(['and', 'or', 'unless', 'by', 'without', 'on', 'ignoring', 'offset', 'bool'])

/** The metrics that a PromQL expression names. */
export function metricsIn(expr: string): readonly string[] {
  const plain = expr
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replace(/\b(?:by|without|on|ignoring) *\([^)]*\)/g, '')
    .replace(/\boffset +\w+/g, '')
  return [...plain.matchAll(/[a-zA-Z_:][\w:]*(?! *\()\b/g)].flatMap(([name]) => (KEYWORDS.has(name) ? [] : [name]))
}
