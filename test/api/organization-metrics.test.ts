import t from 'tap'
import { type OrganizationLabels, OrganizationMetrics } from '../../api/organization-metrics.ts'
import { publishAssessments, publishRecommendations } from '../../engine/assess/publish.ts'
import { HOUR_MS, MINUTE_MS } from '../../engine/kernel/process/clock.ts'
import { Metrics } from '../../engine/kernel/process/metrics.ts'
import { runScan } from '../../engine/scan/scan-runner.ts'
import { newUuid } from '../../engine/store/keys.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import { draft } from '../support/assessments.ts'
import { report } from '../support/coverage.ts'
import { delta } from '../support/sources.ts'
import { makeOrganization, NOON, openStore, registries, Sender, type TestStore } from '../support/store.ts'

const metrics = new Metrics()
t.teardown(() => metrics.close())

/** The series of the organizations, with `ORG` for the id. */
async function series(gauges: OrganizationMetrics, nowMs: number, { id }: Organization): Promise<string[]> {
  const { body } = metrics.render(await gauges.rows(nowMs))
  return body
    .split('\n')
    .filter((line) => line.startsWith('posture_organization'))
    .map((line) => line.replace('posture_organization', '').replace(id, 'ORG'))
}

function gaugesOf({ store }: TestStore, labels: OrganizationLabels = 'ids'): OrganizationMetrics {
  return new OrganizationMetrics(store, labels)
}

function scan({ store, clock }: TestStore, { id }: Organization, names: readonly string[]): void {
  const sender = new Sender()
  store.environment.write(() => {
    store.buffer.append(
      id,
      names.map((name) => sender.event(name, clock.nowMs())),
    )
  })
  runScan(store, registries, id, 'administrator', clock)
}

/** Completes an assessment with this score, and leaves two recommendations. */
function assess({ store }: TestStore, organizationId: string, completion: number, overallScore: number): void {
  const completed = { organizationId, status: 'completed', completion, completedAtMs: NOON } as const
  const result = { overallScore, grade: 'C', categories: [] }
  const common = { organizationId, frameworkId: 'hipaa', title: 'Do', priority: 1, category: 'All' } as const
  const times = { createdAtMs: NOON, statusChangedAtMs: NOON, owner: '' }
  store.environment.write(() => {
    store.assessments.put(draft({ id: newUuid(), ...completed, result }), [])
    store.recommendations.put({ id: newUuid(), itemId: 'a', status: 'open', ...common, ...times })
    store.recommendations.put({ id: newUuid(), itemId: 'b', status: 'dismissed', ...common, ...times })
    publishAssessments(store, organizationId)
    publishRecommendations(store, organizationId)
  })
}

t.test('organizations have no gauges unless the operator switches them on', async (t) => {
  const site = openStore(t)
  makeOrganization(site, 'Acme')
  t.same(await gaugesOf(site, 'off').rows(NOON), [])
})

t.test('the gauges of an organization', async (t) => {
  const site = openStore(t, { unchecked: true })
  const { store, clock } = site
  const acme = makeOrganization(site, 'Acme')
  const gauges = gaugesOf(site)
  t.same(await series(gauges, clock.nowMs(), acme), [
    '_recommendations{organization="ORG",status="open"} 0',
    '_recommendations{organization="ORG",status="in_progress"} 0',
    '_recommendations{organization="ORG",status="completed"} 0',
    '_recommendations{organization="ORG",status="dismissed"} 0',
    '_sources{organization="ORG",state="active"} 0',
    '_sources{organization="ORG",state="silent"} 0',
    '_sensors{organization="ORG",state="reporting"} 0',
    '_sensors{organization="ORG",state="silent"} 0',
    '_sensors{organization="ORG",state="stopped"} 0',
    's_left_out{reason="limit"} 0',
    's_left_out{reason="unreadable"} 0',
  ])
  const counters = { packets: 90, packets_lost: 10, names: 1 }
  store.environment.write(() => {
    store.sources.add([
      delta({ organizationId: acme.id, host: 'proxy-1' }),
      delta({ organizationId: acme.id, host: 'proxy-2', lastSeenMs: NOON - 2 * HOUR_MS }),
    ])
    store.coverage.add(acme.id, report({ counters }), clock.nowMs())
  })
  assess(site, acme.id, 1, 50)
  assess(site, acme.id, 2, 61)
  scan(site, acme, ['claude.ai', 'chatgpt.com', 'www.canva.com'])
  clock.add(MINUTE_MS)
  const now = await series(gauges, clock.nowMs(), acme)
  t.same(now, [
    '_platforms{organization="ORG"} 2',
    '_ai_capable_platforms{organization="ORG"} 1',
    '_unapproved_platforms{organization="ORG"} 2',
    `_risk_score{organization="ORG"} ${store.scans.last(acme.id, () => true)?.summary.overallRiskScore}`,
    `_last_scan_timestamp_seconds{organization="ORG"} ${NOON / 1000}`,
    '_framework_score{organization="ORG",framework="hipaa"} 61',
    '_recommendations{organization="ORG",status="open"} 1',
    '_recommendations{organization="ORG",status="in_progress"} 0',
    '_recommendations{organization="ORG",status="completed"} 0',
    '_recommendations{organization="ORG",status="dismissed"} 1',
    '_visible_ratio{organization="ORG"} 0.9',
    '_sources{organization="ORG",state="active"} 1',
    '_sources{organization="ORG",state="silent"} 1',
    '_sensors{organization="ORG",state="reporting"} 1',
    '_sensors{organization="ORG",state="silent"} 0',
    '_sensors{organization="ORG",state="stopped"} 0',
    's_left_out{reason="limit"} 0',
    's_left_out{reason="unreadable"} 0',
  ])
  t.ok(Number(now[3]?.split(' ')[1]) > 0, 'the risk is that of a scan')
  clock.add(HOUR_MS)
  t.match(await series(gauges, clock.nowMs(), acme), [
    ...now.slice(0, 11),
    '_sources{organization="ORG",state="active"} 0',
    '_sources{organization="ORG",state="silent"} 2',
    '_sensors{organization="ORG",state="reporting"} 0',
    '_sensors{organization="ORG",state="silent"} 1',
  ])
})

t.test('the name of an organization is a second label, and follows a change', async (t) => {
  const site = openStore(t)
  const acme = makeOrganization(site, 'Acme "A"')
  const gauges = gaugesOf(site, 'names')
  const first = (lines: readonly string[]): string | undefined => lines[0]
  t.equal(
    first(await series(gauges, NOON, acme)),
    '_recommendations{organization="ORG",organization_name="Acme \\"A\\"",status="open"} 0',
  )
  site.store.environment.write(() => site.store.organizations.rename(acme, 'Bolt'))
  t.equal(
    first(await series(gauges, NOON, acme)),
    '_recommendations{organization="ORG",organization_name="Bolt",status="open"} 0',
  )
})

t.test('organizations beyond the limit are counted, and removed ones disappear', async (t) => {
  const site = openStore(t, { unchecked: true })
  const { store } = site
  const all = ['A', 'B', 'C'].map((name) => makeOrganization(site, name))
  const gauges = new OrganizationMetrics(store, 'ids', 2)
  const shown = async (): Promise<(string | undefined)[]> => {
    const { body } = metrics.render(await gauges.rows(NOON))
    return [
      ...[...body.matchAll(/_recommendations\{organization="([^"]+)",status="open"/g)].map(([, id]) => id),
      /left_out\{reason="limit"\} (\d+)/.exec(body)?.[1],
    ]
  }
  const ids = store.organizations.ids()
  t.same(await shown(), [...ids.slice(0, 2), '1'])
  const removed = all.find(({ id }) => id === ids[0])
  store.environment.write(() => removed && store.organizations.remove(removed))
  t.same(await shown(), [...ids.slice(1), '0'])
})

t.test('an organization with a damaged record is counted, and hides no other', async (t) => {
  const site = openStore(t, { unchecked: true })
  const { store } = site
  const [acme, bolt] = [makeOrganization(site, 'Acme'), makeOrganization(site, 'Bolt')]
  const gauges = gaugesOf(site)
  store.environment.write(() => {
    store.environment.table('organizations').putSync(Buffer.from(bolt.id.replaceAll('-', ''), 'hex'), Buffer.alloc(40))
  })
  const lines = await series(gauges, NOON, acme)
  t.ok(lines.includes('_recommendations{organization="ORG",status="open"} 0'))
  t.ok(lines.includes('s_left_out{reason="unreadable"} 1'))
  t.notMatch(lines.join('\n'), bolt.id)
})

t.test('a scrape reads few records of senders: the organizations with the oldest values first', async (t) => {
  const site = openStore(t)
  const { store, clock } = site
  for (const name of ['A', 'B', 'C']) {
    const { id: organizationId } = makeOrganization(site, name)
    store.environment.write(() => store.sources.add([delta({ organizationId })]))
  }
  const gauges = new OrganizationMetrics(store, 'ids', 10, 1)
  const silent = async (): Promise<readonly string[]> => {
    const { body } = metrics.render(await gauges.rows(clock.nowMs()))
    return [...body.matchAll(/_sources\{organization="[^"]+",state="silent"\} (\d)/g)].map(([, value = '']) => value)
  }
  t.same(await silent(), ['0'])
  t.same(await silent(), ['0', '0'])
  t.same(await silent(), ['0', '0', '0'])
  t.same(await silent(), ['0', '0', '0'])
  clock.add(2 * HOUR_MS)
  t.same(await silent(), ['1', '0', '0'])
  t.same(await silent(), ['1', '1', '0'])
  t.same(await silent(), ['1', '1', '1'])
})
