import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { pageText } from '../../../deploy/docs/main.ts'
import {
  alertRules,
  dashboardPanels,
  dashboardQueries,
  exportedMetrics,
  MONITORING,
  metricsIn,
} from '../../support/promql.ts'

t.test('the dashboard, the rules and the pages name only metrics that the programs export', async (t) => {
  const exported = await exportedMetrics(t.testdir())
  const pages = ['docs/reference/metrics.md', 'docs/connect/prometheus.md'].map(pageText).join('')
  const documented = Array.from(pages.matchAll(/`(posture_(?:\w+[a-z]))`/g), ([, name = '']) => name)
  const expressions = [...dashboardQueries(), ...alertRules().map(({ expr }) => expr), ...documented]
  t.ok(expressions.length > 80 && exported.size > 80)
  for (const expr of expressions) {
    const named = metricsIn(expr)
    t.ok(named.length > 0, expr)
    t.same(
      // `up` is Prometheus' own.
      named.filter((name) => name !== 'up' && !exported.has(name)),
      [],
      expr,
    )
  }
})

t.test('the names of metrics in PromQL', async (t) => {
  const rows: readonly (readonly [expr: string, ...names: string[]])[] = [
    ['a_total', 'a_total'],
    ['sum by (place) (rate(a_total{place=~"b_c|d"}[5m])) > 0.5 * max_over_time(e[1h])', 'a_total', 'e'],
    ['(sum(a) or vector(0)) unless on(b) c offset 1d', 'a', 'c'],
    ['time() - a{b="c"}', 'a'],
  ]
  for (const [expr, ...names] of rows) t.same(metricsIn(expr), names, expr)
})

t.test('every alert has a test in which it fires, and one in which it does not', async (t) => {
  const { tests } = parse(readFileSync(join(MONITORING, 'posture-rules.test.yml'), 'utf8')) as {
    readonly tests: readonly {
      readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[]
    }[]
  }
  const expected = tests.flatMap((each) => each.alert_rule_test)
  for (const { alert } of alertRules()) {
    const ofAlert = expected.filter(({ alertname }) => alertname === alert)
    t.ok(
      ofAlert.some(({ exp_alerts }) => exp_alerts.length > 0),
      `${alert} fires`,
    )
    t.ok(
      ofAlert.some(({ exp_alerts }) => exp_alerts.length === 0),
      `${alert} does not fire`,
    )
  }
})

t.test('panels do not overlap, and all queries use the chosen data source', async (t) => {
  const panels = dashboardPanels()
  t.ok(panels.length > 20)
  const cells = new Set<string>()
  for (const { title = '', gridPos, targets = [] } of panels) {
    t.ok(gridPos.x >= 0 && gridPos.x + gridPos.w <= 24, title)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        t.notOk(cells.has(`${x} ${y}`), `${title} at column ${x}, row ${y}`)
        cells.add(`${x} ${y}`)
      }
    }
    for (const { datasource } of targets) t.equal(datasource.uid, '$datasource', title)
  }
})
